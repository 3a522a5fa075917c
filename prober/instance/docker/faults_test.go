// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// One log line says at once that the socket does not exist and what to do. Another line says
// that the source has found the socket.
func TestDockerNoSocket(t *testing.T) {
	f := dockerd.New(t)
	f.Stop()
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.until("the log says so", func() bool {
		return s.log.Count("level=WARN", "out of reach", "socket="+f.Socket, "mount its socket") == 1
	})
	if s.Up() {
		t.Error("up without a daemon")
	}
	f.Start()
	s.await("app", life(1, 1, gate.Running))
	s.until("up", s.Up)
	s.until("said to be in reach", func() bool { return s.log.Count("level=INFO", "in reach again") > 0 })
	if all, info := s.log.Count(""), s.log.Count("level=INFO", "in reach again"); all != 2 || info != 1 {
		t.Errorf("%d lines, %d at info; want 2, 1", all, info)
	}
}

// When a daemon goes away, the last view stays, and the log has one line. When the daemon is
// back, the view goes on.
func TestDockerGoesAway(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.until("up", s.Up)
	f.Stop()
	s.until("down", func() bool { return !s.Up() })
	if got := s.Instance("app"); got != life(1, 1, gate.Running) {
		t.Errorf("got %+v without the daemon", got)
	}
	f.Set("app", 1, "running", 2)
	f.Start()
	s.await("app", life(1, 2, gate.Running))
	s.until("said to be back", func() bool { return s.log.Count("level=INFO") == 1 })
	if warn := s.log.Count("level=WARN"); warn != 1 {
		t.Errorf("%d lines at warn, want 1", warn)
	}
}

// If a stream of events ends, is nonsense or has no end of a line, the source opens another
// stream, and then sees the changes that it has missed.
func TestDockerEventsBreak(t *testing.T) {
	for name, harm := range map[string]func(*dockerd.Daemon){
		"cut":      (*dockerd.Daemon).Cut,
		"half":     func(f *dockerd.Daemon) { f.Tell(`{"Type":"container","Acti`) },
		"nonsense": func(f *dockerd.Daemon) { f.Tell("<html>") },
		"long":     func(f *dockerd.Daemon) { f.Tell(strings.Repeat("x", docker.MaxEvent+1)) },
	} {
		f := dockerd.New(t)
		s := newWorld(t, f.Socket)
		f.Set("app", 1, "running", 1)
		s.watch("app")
		stop := s.run()
		s.until("up", s.Up)
		f.Set("app", 1, "running", 2)
		harm(f)
		s.await("app", life(1, 2, gate.Running))
		s.until(name+": up", s.Up)
		stop()
		if n := s.log.Count("level=WARN", "out of reach"); n != 1 {
			t.Errorf("%s: %d lines at warn, want 1", name, n)
		}
	}
}

// If a daemon hangs, at the start, at the events or later, the timeout tells. When the daemon
// answers again, the view goes on.
func TestDockerHangs(t *testing.T) {
	for _, path := range []string{"/version", "/events"} {
		f := dockerd.New(t)
		s := newWorld(t, f.Socket)
		s.client.Timeout = 20 * time.Millisecond
		f.Set("app", 1, "running", 1)
		f.Fault(path, dockerd.Hangs)
		s.watch("app")
		s.run()
		s.until(path+": the log says so", func() bool { return s.log.Count("level=WARN", "does not answer") == 1 })
		f.Fault(path, nil)
		s.await("app", life(1, 1, gate.Running))
	}

	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	s.client.Timeout, s.refresh = 100*time.Millisecond, 20*time.Millisecond
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.until("up", s.Up)
	f.Fault("/", dockerd.Hangs)
	s.until("down", func() bool { return !s.Up() })
	if got := s.Instance("app"); got != life(1, 1, gate.Running) {
		t.Errorf("got %+v while the daemon hangs", got)
	}
	f.Set("app", 1, "running", 2)
	f.Fault("/", nil)
	s.await("app", life(1, 2, gate.Running))
}

// A source ends within 5 seconds, the timeout of a call, whatever the daemon does.
func TestDockerEndsInTrouble(t *testing.T) {
	for _, path := range []string{"/version", "/events", "/containers"} {
		f := dockerd.New(t)
		s := newWorld(t, f.Socket)
		asked := make(chan bool, 10)
		f.Fault(path, func(w http.ResponseWriter, r *http.Request) {
			asked <- true
			dockerd.Hangs(w, r)
		})
		s.watch("app")
		stop := s.run()
		<-asked
		begin := time.Now()
		stop()
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("%s: took %v to end", path, took)
		}
		if n := s.log.Count(""); n != 0 {
			t.Errorf("%s: %d lines about an end, want 0", path, n)
		}
	}
	s := newWorld(t, "/no/such/socket")
	s.minRetry = time.Hour
	stop := s.run()
	s.until("it is in back-off", func() bool { return s.log.Count("out of reach") == 1 })
	stop()
}

// If the daemon has no usable answer for one container, the views of the others go on. The last
// view of that container stays, and the source is not up until there is an answer.
func TestDockerOneAnswerUnusable(t *testing.T) {
	whole := `{"Id":"` + dockerd.ID(2) + `","Name":"/bad","State":{"Status":"running","StartedAt":"2026-01-01T00:00:09Z"}}`
	for name, h := range map[string]http.HandlerFunc{
		"hangs":      dockerd.Hangs,
		"half":       dockerd.Says(200, whole[:60]),
		"nothing":    dockerd.Says(200, ""),
		"nonsense":   dockerd.Says(200, "<html>"),
		"other type": dockerd.Says(200, strings.Replace(whole, `"running"`, "7", 1)),
		"no ID":      dockerd.Says(200, strings.Replace(whole, dockerd.ID(2), "", 1)),
		"no start":   dockerd.Says(200, strings.Replace(whole, "2026", "soon", 1)),
		"huge":       dockerd.Says(200, `{"Id":"`+strings.Repeat("a", docker.MaxAnswer)),
		"sick":       dockerd.Says(500, `{"message":"layer does not exist"}`),
		"ambiguous":  dockerd.Says(400, "{"),
		"redirect":   dockerd.Says(302, ""),
	} {
		f := dockerd.New(t)
		s := newWorld(t, f.Socket)
		s.client.Timeout = 100 * time.Millisecond
		if name != "hangs" {
			s.client.Timeout = 10 * time.Second
		}
		f.Set("app", 1, "running", 1)
		f.Set("bad", 2, "running", 2)
		s.watch("app")
		s.watch("bad")
		stop := s.run()
		s.await("bad", life(2, 2, gate.Running))
		s.until("up", s.Up)

		f.Fault("/containers/bad", h)
		f.Event("start", 2)
		s.until(name+": down", func() bool { return !s.Up() })
		f.Set("app", 1, "running", 3)
		f.Event("start", 1)
		s.await("app", life(1, 3, gate.Running))
		if got := s.Instance("bad"); got != life(2, 2, gate.Running) {
			t.Errorf("%s: got %+v, want the last view", name, got)
		}
		if s.Describe("bad").Message == "" || s.log.Count("level=WARN", "target=bad") != 1 || s.log.Count("out of reach") != 0 {
			t.Errorf("%s: message %q, log %s", name, s.Describe("bad").Message, s.log.String())
		}

		f.Fault("/containers/bad", nil)
		f.Set("bad", 2, "running", 4)
		f.Event("start", 2)
		s.await("bad", life(2, 4, gate.Running))
		s.until(name+": up again", s.Up)
		stop()
		if s.log.Count("level=INFO", "target=bad") != 1 {
			t.Errorf("%s: the log does not say that the container has an answer again", name)
		}
	}
}

// A daemon that stops answering during a look is out of reach.
func TestDockerLostDuringLook(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	drop := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	f.Fault("/containers", drop)
	f.Fault("/_ping", drop)
	s.watch("app")
	s.run()
	s.until("the log says so", func() bool { return s.log.Count("level=WARN", "out of reach") == 1 })
	if got := s.log.Count("target=app"); got != 0 {
		t.Errorf("%d lines about the target, want 0", got)
	}
	f.Fault("/containers", nil)
	f.Fault("/_ping", nil)
	s.await("app", life(1, 1, gate.Running))
}

// A source whose daemon cannot list containers is not up.
func TestDockerNoList(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Fault("/containers/json", dockerd.Says(500, ""))
	s.Watch(&config.Target{Name: "app", Instance: config.Instance{Label: config.Label{Name: "role"}}})
	s.run()
	s.until("the log says so", func() bool { return s.log.Count("level=WARN", "role=", "Internal Server Error") == 1 })
	if s.Up() {
		t.Error("up without an answer")
	}
}

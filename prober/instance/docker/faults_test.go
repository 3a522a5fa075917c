// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// A socket that is not there is told of at once, in 1 line that says what to do, and
// found when it comes, in 1 line.
func TestDockerNoSocket(t *testing.T) {
	f := newDockerDaemon(t)
	f.stop()
	s := newDockerTest(t, f.socket)
	f.set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.until("the log says so", func() bool {
		return s.log.Count("level=WARN", "out of reach", "socket="+f.socket, "mount its socket") == 1
	})
	if s.Up() {
		t.Error("up without a daemon")
	}
	f.start()
	s.await("app", dockerLife(1, 1, gate.Running))
	s.until("up", s.Up)
	s.until("said to be in reach", func() bool { return s.log.Count("level=INFO", "in reach again") > 0 })
	if all, info := s.log.Count(""), s.log.Count("level=INFO", "in reach again"); all != 2 || info != 1 {
		t.Errorf("%d lines, %d at info; want 2, 1", all, info)
	}
}

// For each way to be out of reach there is a hint; that to a refused connection speaks
// of a socket that a daemon left behind.
func TestDockerHint(t *testing.T) {
	stale := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	refused := newDockerClient(stale).ping(t.Context())
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, "the directory of the socket"},
		{newDockerClient(stale + "no").ping(t.Context()), "mount its socket"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}, "with a group"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "does not answer"},
		{errors.New("odd"), "log"},
	} {
		if got := dockerHint(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%v: got hint %q, want %q in it", c.err, got, c.want)
		}
	}
	if !errors.Is(refused, syscall.ECONNREFUSED) || errors.Is(refused, fs.ErrNotExist) {
		t.Errorf("got %v of a socket without a daemon", refused)
	}
}

// A daemon that goes away takes nothing with it: the last view stays, there is 1 line,
// and when it is back the view goes on.
func TestDockerGoesAway(t *testing.T) {
	f := newDockerDaemon(t)
	s := newDockerTest(t, f.socket)
	f.set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.until("up", s.Up)
	f.stop()
	s.until("down", func() bool { return !s.Up() })
	if got := s.Instance("app"); got != dockerLife(1, 1, gate.Running) {
		t.Errorf("got %+v while the daemon is away", got)
	}
	f.set("app", 1, "running", 2)
	f.start()
	s.await("app", dockerLife(1, 2, gate.Running))
	s.until("said to be back", func() bool { return s.log.Count("level=INFO") == 1 })
	if warn := s.log.Count("level=WARN"); warn != 1 {
		t.Errorf("%d lines at warn, want 1", warn)
	}
}

// A stream of events that ends, is nonsense or has no end of a line is opened again, and
// what was missed meanwhile is seen.
func TestDockerEventsBreak(t *testing.T) {
	for name, harm := range map[string]func(*dockerDaemon){
		"cut":      (*dockerDaemon).cut,
		"half":     func(f *dockerDaemon) { f.tell(`{"Type":"container","Acti`) },
		"nonsense": func(f *dockerDaemon) { f.tell("<html>") },
		"long":     func(f *dockerDaemon) { f.tell(strings.Repeat("x", maxDockerEvent+1)) },
	} {
		f := newDockerDaemon(t)
		s := newDockerTest(t, f.socket)
		f.set("app", 1, "running", 1)
		s.watch("app")
		stop := s.run()
		s.until("up", s.Up)
		f.set("app", 1, "running", 2)
		harm(f)
		s.await("app", dockerLife(1, 2, gate.Running))
		s.until(name+": up", s.Up)
		stop()
		if n := s.log.Count("level=WARN", "out of reach"); n != 1 {
			t.Errorf("%s: %d lines at warn, want 1", name, n)
		}
	}
}

// A daemon that hangs, at the start, at the events, or later, is found out by its
// timeout, and the view goes on when it answers.
func TestDockerHangs(t *testing.T) {
	for _, path := range []string{"/version", "/events"} {
		f := newDockerDaemon(t)
		s := newDockerTest(t, f.socket)
		s.client.timeout = 20 * time.Millisecond
		f.set("app", 1, "running", 1)
		f.fault(path, hangs)
		s.watch("app")
		s.run()
		s.until(path+": the log says so", func() bool { return s.log.Count("level=WARN", "does not answer") == 1 })
		f.fault(path, nil)
		s.client.http.CloseIdleConnections()
		s.await("app", dockerLife(1, 1, gate.Running))
	}

	f := newDockerDaemon(t)
	s := newDockerTest(t, f.socket)
	s.client.timeout, s.refresh = 100*time.Millisecond, 20*time.Millisecond
	f.set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.until("up", s.Up)
	f.fault("/", hangs)
	s.until("down", func() bool { return !s.Up() })
	if got := s.Instance("app"); got != dockerLife(1, 1, gate.Running) {
		t.Errorf("got %+v while the daemon hangs", got)
	}
	f.set("app", 1, "running", 2)
	f.fault("/", nil)
	s.await("app", dockerLife(1, 2, gate.Running))
}

// A source that is told to end does, whatever the daemon does: within 5 seconds, which is
// the timeout of a call.
func TestDockerEndsInTrouble(t *testing.T) {
	for _, path := range []string{"/version", "/events", "/containers"} {
		f := newDockerDaemon(t)
		s := newDockerTest(t, f.socket)
		asked := make(chan bool, 10)
		f.fault(path, func(w http.ResponseWriter, r *http.Request) {
			asked <- true
			hangs(w, r)
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
			t.Errorf("%s: %d lines for an end, want 0", path, n)
		}
	}
	s := newDockerTest(t, "/no/such/socket")
	s.minRetry = time.Hour
	stop := s.run()
	s.until("it is in back-off", func() bool { return s.log.Count("out of reach") == 1 })
	stop()
}

// One container of which the daemon has no usable answer costs the others nothing: their
// view goes on, its last view stays, and the source is not up until there is an answer.
func TestDockerOneAnswerUnusable(t *testing.T) {
	whole := `{"Id":"` + dockerID(2) + `","Name":"/bad","State":{"Status":"running","StartedAt":"2026-01-01T00:00:09Z"}}`
	for name, h := range map[string]http.HandlerFunc{
		"hangs":      hangs,
		"half":       says(200, whole[:60]),
		"nothing":    says(200, ""),
		"nonsense":   says(200, "<html>"),
		"other type": says(200, strings.Replace(whole, `"running"`, "7", 1)),
		"no ID":      says(200, strings.Replace(whole, dockerID(2), "", 1)),
		"no start":   says(200, strings.Replace(whole, "2026", "soon", 1)),
		"huge":       says(200, `{"Id":"`+strings.Repeat("a", maxDockerAnswer)),
		"sick":       says(500, `{"message":"layer does not exist"}`),
		"ambiguous":  says(400, "{"),
		"redirect":   says(302, ""),
	} {
		f := newDockerDaemon(t)
		s := newDockerTest(t, f.socket)
		s.client.timeout = 100 * time.Millisecond
		if name != "hangs" {
			s.client.timeout = 10 * time.Second
		}
		f.set("app", 1, "running", 1)
		f.set("bad", 2, "running", 2)
		s.watch("app")
		s.watch("bad")
		stop := s.run()
		s.await("bad", dockerLife(2, 2, gate.Running))
		s.until("up", s.Up)

		f.fault("/containers/bad", h)
		f.event("start", 2)
		s.until(name+": down", func() bool { return !s.Up() })
		f.set("app", 1, "running", 3)
		f.event("start", 1)
		s.await("app", dockerLife(1, 3, gate.Running))
		if got := s.Instance("bad"); got != dockerLife(2, 2, gate.Running) {
			t.Errorf("%s: got %+v, want the last view", name, got)
		}
		if s.Describe("bad").Message == "" || s.log.Count("level=WARN", "target=bad") != 1 || s.log.Count("out of reach") != 0 {
			t.Errorf("%s: message %q, log %s", name, s.Describe("bad").Message, s.log.String())
		}

		f.fault("/containers/bad", nil)
		f.set("bad", 2, "running", 4)
		f.event("start", 2)
		s.await("bad", dockerLife(2, 4, gate.Running))
		s.until(name+": up again", s.Up)
		stop()
		if s.log.Count("level=INFO", "target=bad") != 1 {
			t.Errorf("%s: the log does not say that it is well", name)
		}
	}
}

// A daemon that answers nothing more in the middle of a look is out of reach.
func TestDockerLostDuringLook(t *testing.T) {
	f := newDockerDaemon(t)
	s := newDockerTest(t, f.socket)
	f.set("app", 1, "running", 1)
	drop := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	f.fault("/containers", drop)
	f.fault("/_ping", drop)
	s.watch("app")
	s.run()
	s.until("the log says so", func() bool { return s.log.Count("level=WARN", "out of reach") == 1 })
	if got := s.log.Count("target=app"); got != 0 {
		t.Errorf("%d lines about the target, want 0", got)
	}
	f.fault("/containers", nil)
	f.fault("/_ping", nil)
	s.await("app", dockerLife(1, 1, gate.Running))
}

// A list of containers that the daemon cannot give is no answer.
func TestDockerNoList(t *testing.T) {
	f := newDockerDaemon(t)
	s := newDockerTest(t, f.socket)
	f.fault("/containers/json", says(500, ""))
	s.Watch(&config.Target{Name: "app", Instance: config.Instance{Label: config.Label{Name: "role"}}})
	s.run()
	s.until("the log says so", func() bool { return s.log.Count("level=WARN", "role=", "Internal Server Error") == 1 })
	if s.Up() {
		t.Error("up without an answer")
	}
}

// Of the versions of the API the newest that both sides know is spoken, 1.44 at most, but
// for a daemon that speaks only newer ones; what is no version is refused.
func TestDockerVersion(t *testing.T) {
	for answer, want := range map[string]string{
		`{"ApiVersion":"1.41","MinAPIVersion":"1.12"}`: "/v1.41",
		`{"ApiVersion":"1.52","MinAPIVersion":"1.44"}`: "/v1.44",
		`{"ApiVersion":"1.60","MinAPIVersion":"1.50"}`: "/v1.50",
		`{"ApiVersion":"1.40"}`:                        "/v1.40",
		`{"ApiVersion":"2.0"}`:                         "",
		`{"ApiVersion":"1.x"}`:                         "",
		`{"ApiVersion":"1.41","MinAPIVersion":"old"}`:  "",
		`{}`:   "",
		`[`:    "",
		`"no"`: "",
	} {
		f := newDockerDaemon(t)
		f.fault("/version", says(200, answer))
		c := newDockerClient(f.socket)
		err := c.negotiate(t.Context())
		if got := c.versioned(""); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", answer, got, err, want)
		}
	}
}

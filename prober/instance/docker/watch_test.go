// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// If a reload watches the same container for a target, the target keeps its instance. If a
// reload watches another container, or forgets the target, the instance is gone.
func TestDockerWatchAgain(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	f.Fault("/containers/db", dockerd.Says(500, `{"message":"sick"}`))
	s.watch("app")
	s.watch("db")
	stop := s.run()
	want := life(1, 1, gate.Running)
	s.await("app", want)
	s.until("the source has no answer for db", func() bool { return s.Describe("db").Message != "" && !s.Up() })
	s.Forget("db")
	s.until("up", s.Up)
	for range 100 {
		s.watch("app")
		if got := s.Instance("app"); got != want {
			t.Fatalf("got %+v after the same watch, want %+v", got, want)
		}
	}
	s.Watch(&config.Target{Name: "app"})
	if got := s.Instance("app"); got != (gate.Instance{}) {
		t.Errorf("got %+v for another container", got)
	}
	s.until("nothing is configured", func() bool { return strings.Contains(s.Describe("app").Message, "configured") })
	s.Forget("app")
	s.Forget("app")
	if i, d := s.Instance("app"), s.Describe("app"); i != (gate.Instance{}) || d != (instance.Details{}) {
		t.Errorf("got %+v, %+v for a forgotten target", i, d)
	}
	stop()
	if s.Up() {
		t.Error("the source is up after its end")
	}
	s.watch("app")
	s.run()
	s.await("app", want)
}

// The source drops a view of a target that a reload has forgotten meanwhile.
func TestDockerForgottenMeanwhile(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	asked, goOn := make(chan bool), make(chan bool)
	f.Fault("/containers/app", func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		<-goOn
		dockerd.Says(404, "")(w, r)
	})
	s.watch("app")
	s.run()
	<-asked
	s.Forget("app")
	close(goOn)
	s.until("up", s.Up)
	if s.log.Count("") != 0 || len(s.changed) != 0 {
		t.Errorf("got %d lines, %d changes; want none", s.log.Count(""), len(s.changed))
	}
}

// The source tells of no change for events of other containers or of other things, and for
// events without news. It tells once of each change.
func TestDockerChanged(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	if got := <-s.changed; got != "app" {
		t.Errorf("got %q", got)
	}
	s.until("up", s.Up)
	before := f.Count("GET /v1.41/containers/app/json")
	f.Tell("")
	f.Tell(`{"Type":"network"}`)
	f.Event("start", 7, "name", "other")
	f.Event("update", 1)
	s.until("it has looked", func() bool { return f.Count("GET /v1.41/containers/app/json") == before+1 })
	f.Set("app", 1, "paused", 1)
	f.Event("pause", 1)
	<-s.changed
	s.await("app", life(1, 1, gate.PhaseUnknown))
	if n := len(s.changed); n != 0 {
		t.Errorf("%d more changes, want 0", n)
	}
}

// A look from time to time sees the changes that events do not tell.
func TestDockerRefresh(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	s.refresh = 10 * time.Millisecond
	f.Set("app", 1, "running", 1)
	s.watch("app")
	s.run()
	s.await("app", life(1, 1, gate.Running))
	f.Set("app", 1, "running", 2)
	s.await("app", life(1, 2, gate.Running))
}

// When a source ends, so have its goroutines: after 20 runs there are as many as before.
func TestDockerNoLeak(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	s.watch("app")
	var before int
	for i := range 21 {
		stop := s.run()
		s.until("up", s.Up)
		stop()
		if i == 0 {
			before = runtime.NumGoroutine()
		}
	}
	s.until("no more goroutines", func() bool { return runtime.NumGoroutine() <= before+2 })
}

// An instance is being stopped from the stop signal, or a kill, until its next life; a signal that
// does not ask every application to end does not count, unless it is the stop signal. The
// source sees a target as long as the daemon has usable answers about that very target.
func TestDockerStopping(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	f.Set("app", 1, "running", 1)
	f.Set("web", 2, "running", 1, func(c *docker.Container) { c.Config.StopSignal = "SIGWINCH" })
	s.watch("app")
	s.watch("web")
	if s.Sees("app") {
		t.Error("seen before the first look")
	}
	stop := s.run()
	s.until("up", s.Up)
	f.Event("kill", 1, "signal", "15")
	s.until("app is being stopped", func() bool { return !s.Describe("app").Stopping.IsZero() })
	f.Event("kill", 2, "signal", "28")
	s.until("web is being stopped", func() bool { return !s.Describe("web").Stopping.IsZero() })
	f.Set("app", 1, "running", 2)
	f.Event("start", 1)
	s.until("a new life", func() bool { return s.Describe("app").Stopping.IsZero() })
	// In this order: whoever has seen the last has seen all.
	f.Event("kill", 1, "signal", "1")
	f.Event("kill", 1, "signal", "10")
	f.Event("kill", 2, "signal", "9")
	f.Set("app", 1, "running", 3)
	f.Event("update", 1)
	s.await("app", life(1, 3, gate.Running))
	if got := s.Describe("app").Stopping; !got.IsZero() {
		t.Errorf("stopping at %v after SIGHUP and SIGUSR1", got)
	}

	if !s.Sees("app") || s.Sees("nobody") {
		t.Error("not seen although the daemon answers")
	}
	f.Fault("/containers/app", dockerd.Says(500, "sick"))
	f.Event("update", 1)
	s.until("the daemon has no answer", func() bool { return !s.Sees("app") })
	if !s.Sees("web") {
		t.Error("another target is not seen")
	}
	stop()
	if s.Sees("web") {
		t.Error("seen after the end")
	}
}

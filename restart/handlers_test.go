// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// Every handler of the file has a row, and each row a word for a dry run.
func TestEveryHandler(t *testing.T) {
	for _, name := range config.RestartHandlers() {
		h, ok := handlers[name]
		if !ok || h.act == nil {
			t.Errorf("%s has no row", name)
			continue
		}
		q := &request{grace: time.Minute, target: &config.Target{Restart: &config.Restart{
			Signal: &config.RestartSignal{StopSignal: "SIGINT"}, Systemd: &config.RestartSystemd{Unit: "shop.service"},
			Exec: &config.Exec{Command: []string{"a", "b"}},
		}}}
		if h.does(q) == "" {
			t.Errorf("%s does nothing", name)
		}
	}
	if len(handlers) != len(config.RestartHandlers()) {
		t.Errorf("%d rows, want %d", len(handlers), len(config.RestartHandlers()))
	}
}

// containerRequest asks for a restart of the first container as it is now.
func containerRequest(t *testing.T, f *dockerd.Daemon) *request {
	t.Helper()
	c, err := docker.New(f.Socket).Inspect(t.Context(), dockerd.ID(1))
	if err != nil {
		t.Fatal(err)
	}
	return &request{
		target: &config.Target{
			Instance: config.Instance{Source: config.SourceDocker, Container: "app", Socket: f.Socket},
			Restart:  &config.Restart{Docker: &config.RestartDocker{}},
		},
		instance: c.Life(), grace: 2500 * time.Millisecond, longest: time.Minute, linger: time.Minute, begin: mayBegin,
	}
}

const askForRestart = "POST /v1.41/containers/"

// The Engine restarts the container by its ID, with the grace period in whole seconds.
func TestDocker(t *testing.T) {
	f := dockerd.New(t)
	f.Set("app", 1, "running", 1)
	q := containerRequest(t, f)
	var query atomic.Value
	id := dockerd.ID(1)
	f.Fault("/containers/"+id+"/restart", func(w http.ResponseWriter, r *http.Request) {
		query.Store(r.URL.RawQuery)
		w.WriteHeader(http.StatusNoContent)
	})
	did, err := restartContainer(t.Context(), q)
	if err != nil || did == "" || f.Count(askForRestart+id+"/restart") != 1 || query.Load() != "t=3" {
		t.Errorf("%q, error %v, query %v", did, err, query.Load())
	}
	f.Fault("/containers/"+id+"/restart", nil)
	q.instance += "/1" // a declared restart of the same life
	if _, err := restartContainer(t.Context(), q); err != nil {
		t.Errorf("a declared instance: %v", err)
	}
	if _, err := restartContainer(t.Context(), q); !errors.As(err, new(stale)) {
		t.Errorf("a container that has been restarted: %v", err)
	}
}

// A container that does not run, that somebody has restarted, or that is gone, is not touched.
func TestDockerStale(t *testing.T) {
	for name, change := range map[string]func(f *dockerd.Daemon, q *request){
		"exited":     func(f *dockerd.Daemon, _ *request) { f.Set("app", 1, "exited", 1) },
		"paused":     func(f *dockerd.Daemon, _ *request) { f.Set("app", 1, "paused", 1) },
		"restarting": func(f *dockerd.Daemon, _ *request) { f.Set("app", 1, "restarting", 1) },
		"stopping":   func(f *dockerd.Daemon, _ *request) { f.Set("app", 1, "stopping", 1) },
		"anew":       func(f *dockerd.Daemon, _ *request) { f.Set("app", 1, "running", 2) },
		"gone":       func(f *dockerd.Daemon, _ *request) { f.Remove("app") },
		"another":    func(f *dockerd.Daemon, _ *request) { f.Remove("app"); f.Set("app", 2, "running", 1) },
		"no life":    func(_ *dockerd.Daemon, q *request) { q.instance = "abcd/12/34" },
	} {
		f := dockerd.New(t)
		f.Set("app", 1, "running", 1)
		q := containerRequest(t, f)
		change(f, q)
		_, err := restartContainer(t.Context(), q)
		if !errors.As(err, new(stale)) || f.Count(askForRestart+dockerd.ID(1)+"/restart") != 0 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An Engine that says no, or is out of reach, makes the act fail. One that has stopped the
// container and could not start it again is asked to finish.
func TestDockerFails(t *testing.T) {
	f := dockerd.New(t)
	f.Set("app", 1, "running", 1)
	q := containerRequest(t, f)
	restart := "/containers/" + dockerd.ID(1) + "/restart"
	f.Fault(restart, dockerd.Says(500, `{"message":"cannot kill"}`))
	if _, err := restartContainer(t.Context(), q); err == nil || !strings.Contains(err.Error(), "cannot kill") {
		t.Errorf("got %v", err)
	}
	if n := f.Count(askForRestart + dockerd.ID(1) + "/restart"); n != 1 {
		t.Errorf("a container that runs was restarted %d times, want 1", n)
	}

	f.Fault(restart, func(w http.ResponseWriter, r *http.Request) {
		f.Set("app", 1, "exited", 1)
		f.Fault(restart, nil)
		dockerd.Says(500, `{"message":"cannot start"}`)(w, r)
	})
	if _, err := restartContainer(t.Context(), q); err != nil {
		t.Errorf("half a restart: %v", err)
	}
	c, err := docker.New(f.Socket).Inspect(t.Context(), dockerd.ID(1))
	if err != nil || c.State.Status != "running" {
		t.Errorf("the container is %+v, error %v", c, err)
	}

	f.Stop()
	if _, err := restartContainer(t.Context(), q); err == nil || errors.As(err, new(stale)) {
		t.Errorf("out of reach: %v", err)
	}
	f.Start()
}

// When the agent stops, an Engine that is at work gets a moment, and then goes on alone.
func TestDockerLingers(t *testing.T) {
	f := dockerd.New(t)
	f.Set("app", 1, "running", 1)
	q := containerRequest(t, f)
	q.linger = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	f.Fault("/containers/"+dockerd.ID(1)+"/restart", func(w http.ResponseWriter, r *http.Request) {
		cancel()
		dockerd.Hangs(w, r)
	})
	if _, err := restartContainer(ctx, q); err == nil || !strings.Contains(err.Error(), "leaves the restart to the Engine") {
		t.Errorf("got %v", err)
	}
	q.linger = time.Minute
	ctx, cancel = context.WithCancel(t.Context())
	f.Fault("/containers/"+dockerd.ID(1)+"/restart", func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusNoContent)
	})
	if _, err := restartContainer(ctx, q); err != nil {
		t.Errorf("an answer after the end: %v", err)
	}
}

// A question to the Engine that the end of the agent cuts short has done nothing: it is no failure
// of the act.
func TestDockerCutShortBeforeTheAct(t *testing.T) {
	for _, inspects := range []bool{false, true} {
		f := dockerd.New(t)
		f.Set("app", 1, "running", 1)
		q := containerRequest(t, f)
		question := "/version"
		if id, _ := docker.OfLife(q.instance); inspects {
			question = "/containers/" + id + "/json"
		}
		ctx, cancel := context.WithCancel(t.Context())
		asked := false
		f.Fault(question, func(w http.ResponseWriter, r *http.Request) {
			asked = true
			cancel()
			dockerd.Hangs(w, r)
		})
		if _, err := restartContainer(ctx, q); !asked || !errors.As(err, new(stale)) {
			t.Errorf("%s: got %v, want stale", question, err)
		}
	}
}

// What lingers ends so long after its context, and not before.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lingering, done := linger(ctx, time.Minute)
		defer done()
		began := time.Now()
		cancel()
		<-lingering.Done()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("lingered for %v", took)
		}
		ctx, cancel = context.WithCancel(t.Context())
		lingering, done = linger(ctx, time.Minute)
		cancel()
		synctest.Wait()
		done()
		<-lingering.Done() // and its goroutine has ended, or the bubble would not
	})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/docker"
)

// dockerSeen is a running source with a record of each view of "app".
type dockerSeen struct {
	*docker.Source

	mu    sync.Mutex
	views []gate.Instance
}

// watchDocker runs a source on the world's daemon until the test ends.
func watchDocker(t *testing.T, w *dockerWorld, watched config.Instance) *dockerSeen {
	t.Helper()
	s := &dockerSeen{Source: docker.New(w.socket, slog.New(slog.DiscardHandler))}
	s.Watch(&config.Target{Name: "app", Instance: watched})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.Run(ctx, func(string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.views = append(s.views, s.Instance("app"))
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the source ended with %v", err)
		}
	})
	return s
}

// await waits for a view and returns it.
func (s *dockerSeen) await(t *testing.T, what string, ok func(gate.Instance, instance.Details) bool) gate.Instance {
	t.Helper()
	var inst gate.Instance
	testutil.Within(t, 20*time.Second, what, func() bool {
		inst = s.Instance("app")
		return ok(inst, s.Describe("app"))
	})
	return inst
}

// running waits for a running instance other than before.
func (s *dockerSeen) running(t *testing.T, before gate.Instance) gate.Instance {
	t.Helper()
	return s.await(t, "a new instance runs", func(inst gate.Instance, _ instance.Details) bool {
		return inst.Phase == gate.Running && inst.ID != before.ID
	})
}

// lives returns the number of instances in the record, and fails the test if an instance came
// back.
func (s *dockerSeen) lives(t *testing.T) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]bool)
	var last gate.Instance
	for _, v := range s.views {
		if v.ID != last.ID && seen[v.ID] {
			t.Errorf("instance %s came back: %+v", v.ID, s.views)
		}
		if v.ID == last.ID && v.Phase == gate.Running && last.Phase == gate.Terminated {
			t.Errorf("instance %s rose from the dead: %+v", v.ID, s.views)
		}
		if v.ID != "" {
			seen[v.ID] = true
		}
		last = v
	}
	return len(seen)
}

// byName is the choice of container in most tests.
var byName = config.Instance{Source: config.SourceDocker, Container: "app"}

// The source sees every life and every end of a container of a real engine.
func TestDockerSource(t *testing.T) {
	w := newDockerWorld(t)
	for name, test := range map[string]func(*testing.T, *dockerWorld){
		"restart":       dockerRestart,
		"crash":         dockerCrash,
		"final":         dockerFinal,
		"stopped":       dockerStopped,
		"out of memory": dockerOOM,
		"pause":         dockerPause,
		"recreated":     dockerRecreated,
		"label":         dockerLabel,
		"daemon":        dockerDaemonAway,
		"exec":          dockerExec,
		"exec hangs":    dockerExecHangs,
		"exec killed":   dockerExecKilled,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// With Podman's service, which has the same API, the source sees the same.
func TestDockerPodman(t *testing.T) {
	w := newPodmanWorld(t)
	for name, test := range map[string]func(*testing.T, *dockerWorld){
		"restart":   dockerRestart,
		"final":     dockerFinal,
		"pause":     dockerPause,
		"recreated": dockerRecreated,
		"label":     dockerLabel,
		"exec":      dockerExec,
		"hangs":     dockerExecHangs,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// After a docker restart there are two lives with one container ID.
func dockerRestart(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	s := watchDocker(t, w, byName)
	first := s.running(t, gate.Instance{})
	w.docker(t, "restart", "app")
	second := s.running(t, first)
	if a, b := first.ID[:13], second.ID[:13]; a != b || !second.StartedAt.After(first.StartedAt) {
		t.Errorf("got %+v, then %+v; want one container ID, started later", first, second)
	}
	if n := s.lives(t); n != 2 {
		t.Errorf("saw %d lives, want 2", n)
	}
}

// A policy restarts a container after each end with code 3. The source sees the container live
// again, and never shows a running instance with the start of a life that has ended.
func dockerCrash(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "--restart", "on-failure:2", "app:e2e", "crash", "3")
	s := watchDocker(t, w, byName)
	s.await(t, "the third end is final, with exit code 3", func(inst gate.Instance, d instance.Details) bool {
		return inst.Phase == gate.Terminated && inst.Final && d.ExitCode != nil && *d.ExitCode == 3
	})
	if n := s.lives(t); n < 2 || n > 3 {
		t.Errorf("saw %d lives, want 3, or 2 if it came late", n)
	}
}

// Without a policy an end is final, but a start still begins a new life.
func dockerFinal(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	s := watchDocker(t, w, byName)
	first := s.running(t, gate.Instance{})
	w.docker(t, "kill", "app")
	s.await(t, "the end is final, with exit code 137", func(inst gate.Instance, d instance.Details) bool {
		return inst.ID == first.ID && inst.Phase == gate.Terminated && inst.Final &&
			d.ExitCode != nil && *d.ExitCode == 137 && !d.OOMKilled
	})
	w.docker(t, "start", "app")
	s.running(t, first)
}

// If somebody stops a container that something could restart, its end is not final.
func dockerStopped(t *testing.T, w *dockerWorld) {
	for _, policy := range []string{"always", "unless-stopped", "on-failure"} {
		w.run(t, "app", "--restart", policy, "app:e2e")
		s := watchDocker(t, w, byName)
		first := s.running(t, gate.Instance{})
		w.docker(t, "stop", "app")
		s.await(t, "it has ended, with exit code 0", func(inst gate.Instance, d instance.Details) bool {
			return inst.ID == first.ID && inst.Phase == gate.Terminated && d.ExitCode != nil && *d.ExitCode == 0
		})
		if s.Instance("app").Final {
			t.Errorf("%s: final", policy)
		}
		w.docker(t, "start", "app")
		s.running(t, first)
		w.docker(t, "rm", "-f", "app")
	}
}

// If a container eats more than its 32 MiB, the source knows that it ran out of memory, with
// exit code 137.
func dockerOOM(t *testing.T, w *dockerWorld) {
	s := watchDocker(t, w, byName) // before the end, because the daemon may tell of it only in an event
	w.run(t, "app", "--memory", "32m", "app:e2e", "eat")
	s.await(t, "it was killed for its memory", func(inst gate.Instance, d instance.Details) bool {
		return inst.Phase == gate.Terminated && d.OOMKilled && d.ExitCode != nil && *d.ExitCode == 137
	})
}

// A pause of a container is a gap in the view of one life.
func dockerPause(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	s := watchDocker(t, w, byName)
	first := s.running(t, gate.Instance{})
	w.docker(t, "pause", "app")
	s.await(t, "it is paused", func(inst gate.Instance, d instance.Details) bool {
		return inst.ID == first.ID && inst.Phase == gate.PhaseUnknown && d.Paused
	})
	w.docker(t, "unpause", "app")
	s.await(t, "it runs again", func(inst gate.Instance, d instance.Details) bool { return inst == first && !d.Paused })
	if n := s.lives(t); n != 1 {
		t.Errorf("saw %d lives, want 1", n)
	}
}

// A container that is removed has ended, and another container with its name is a new life.
func dockerRecreated(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	s := watchDocker(t, w, byName)
	first := s.running(t, gate.Instance{})
	w.docker(t, "rm", "-f", "app")
	s.await(t, "it has ended, not for good", func(inst gate.Instance, d instance.Details) bool {
		return inst.ID == first.ID && inst.Phase == gate.Terminated && !inst.Final && d.Message != ""
	})
	w.run(t, "next", "app:e2e")
	w.docker(t, "rename", "next", "app")
	if second := s.running(t, first); second.ID[:12] == first.ID[:12] {
		t.Errorf("got %+v after %+v, want another container", second, first)
	}
	if n := s.lives(t); n != 2 {
		t.Errorf("saw %d lives, want 2", n)
	}
}

// Of the containers with a label, the source takes the newest that runs. A container that was
// only created does not end the life of the container before.
func dockerLabel(t *testing.T, w *dockerWorld) {
	w.run(t, "one", "--label", "role=app", "app:e2e")
	s := watchDocker(t, w, config.Instance{Source: config.SourceDocker, Label: config.Label{Name: "role", Value: "app"}})
	first := s.running(t, gate.Instance{})
	t.Cleanup(func() { w.try("rm", "-f", "two") })
	w.docker(t, "create", "--name", "two", "--label", "role=app", "app:e2e")
	w.docker(t, "stop", "one")
	s.await(t, "the first has ended", func(inst gate.Instance, _ instance.Details) bool {
		return inst.ID == first.ID && inst.Phase == gate.Terminated
	})
	w.docker(t, "rm", "one")
	s.await(t, "the second is to come", func(inst gate.Instance, _ instance.Details) bool {
		return inst.ID == first.ID && inst.Phase == gate.Waiting
	})
	w.docker(t, "start", "two")
	second := s.running(t, first)
	w.run(t, "three", "--label", "role=app", "app:e2e")
	s.running(t, second)
	if message := s.Describe("app").Message; !strings.Contains(message, "2 containers") {
		t.Errorf("got message %q, want it to say that 2 run", message)
	}
	if n := s.lives(t); n != 3 {
		t.Errorf("saw %d lives, want 3", n)
	}
}

// While the daemon is away the last view stays, and after that the life is the same.
func dockerDaemonAway(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	s := watchDocker(t, w, byName)
	first := s.running(t, gate.Instance{})
	w.stopDaemon(t)
	testutil.Within(t, 20*time.Second, "the source is down", func() bool { return !s.Up() })
	if got := s.Instance("app"); got != first {
		t.Errorf("got %+v without the daemon, want %+v", got, first)
	}
	w.startDaemon(t)
	testutil.Within(t, 30*time.Second, "the source is up", s.Up)
	if got := s.Instance("app"); got != first {
		t.Errorf("got %+v after the daemon is back, want %+v", got, first)
	}
	if n := s.lives(t); n != 1 {
		t.Errorf("saw %d lives, want 1", n)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// A command that hangs runs once, and is a timeout in each of three attempts. The next command
// starts when the first command, or the life of its container, has ended.
func TestDockerExecHangs(t *testing.T) {
	s, f := running(t)
	e := newExecs(t, f, 0, frame(1, "begun"))
	release := e.hang("e1", "e2")
	for range 3 {
		if _, _, err := s.in(soon, "check"); !errors.Is(err, context.DeadlineExceeded) || isNotStarted(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		if n := e.count(); n != 1 {
			t.Errorf("%d commands run, want 1", n)
		}
	}
	if _, _, err := s.in(soon, "other"); !errors.Is(err, context.DeadlineExceeded) || e.count() != 2 {
		t.Errorf("another command: got %v and %d runs, want a timeout and 2", err, e.count())
	}
	release()
	if _, output, err := s.in(10*time.Second, "check"); output != "begun" || err != nil || e.count() != 3 {
		t.Errorf("after its end: got %q, %v and %d runs; want 3", output, err, e.count())
	}

	defer e.hang("e4", "e5")()
	s.in(soon, "check")
	f.Set("app", 1, "running", 2)
	f.Event("start", 1)
	s.await("app", life(1, 2, gate.Running))
	s.in(soon, "check")
	if n := e.count(); n != 5 {
		t.Errorf("%d commands have run, want a fifth in the next life", n)
	}
}

// A command that had to wait for an earlier command may run out of time. It has then not had
// its own time, so the attempt says nothing. With enough time the attempt counts.
func TestDockerExecAwaitsEarlier(t *testing.T) {
	s, f := running(t)
	e := newExecs(t, f, 0, "")
	release := e.hang("e1", "e2")
	defer release()
	s.in(soon, "check")
	seen := f.Count("GET /v1.41/exec/e1/json")
	done := make(chan error, 1)
	go func() {
		_, _, err := s.in(time.Second, "check")
		done <- err
	}()
	s.until("it is awaited", func() bool { return f.Count("GET /v1.41/exec/e1/json") > seen })
	e.mu.Lock()
	e.running["e1"] = false
	e.mu.Unlock()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "less time than its timeout") {
		t.Errorf("got %v, want an error that the command had less time than its timeout", err)
	}
	if n := e.count(); n != 2 {
		t.Errorf("%d commands have run, want 2", n)
	}
	release()
	if code, _, err := s.in(10*time.Second, "check"); code != 0 || err != nil {
		t.Errorf("got %d, %v; want success", code, err)
	}
}

// An earlier command that the daemon does not know, or has never started, makes no timeout.
func TestDockerExecEarlierUnknown(t *testing.T) {
	s, f := running(t)
	e := newExecs(t, f, 0, "")
	e.pid = 0
	defer e.hang("e1")()
	for range 2 {
		if _, _, err := s.in(soon, "check"); !isNotStarted(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("never started: got %v, want an error that it was not", err)
		}
	}
	f.Fault("/exec/", dockerd.Says(500, `{"message":"sick"}`))
	if _, _, err := s.in(time.Second, "check"); !isNotStarted(err) || !strings.Contains(err.Error(), "sick") {
		t.Errorf("no answer: got %v, want the daemon's", err)
	}
	next := newExecs(t, f, 0, "")
	next.created = e.created
	f.Fault("/exec/e1/json", dockerd.Says(404, ""))
	if _, _, err := s.in(10*time.Second, "check"); err != nil || next.count() != 2 {
		t.Errorf("forgotten by the daemon: got %v and %d runs, want 2", err, next.count())
	}
}

// At the deadline a command that has ended counts with its exit code. There is no timeout if
// the container is frozen, restarted or gone, or if the daemon does not answer.
func TestDockerExecDeadline(t *testing.T) {
	s, f := running(t)
	s.execGrace = 2 * time.Second
	e := newExecs(t, f, 6, "")
	release := e.hang() // the output stays open, but no command runs
	if code, _, err := s.in(soon, "ended"); code != 6 || err != nil {
		t.Errorf("ended in time: got %d, %v; want 6", code, err)
	}
	release()
	for name, harm := range map[string]func(){
		"paused":    func() { f.Set("app", 1, "paused", 1) },
		"restarted": func() { f.Set("app", 1, "running", 2) },
		"exited":    func() { f.Set("app", 1, "exited", 1) },
		"gone":      func() { f.Remove("app") },
		"no answer": func() { f.Fault("/exec/", dockerd.Hangs) },
		"sick":      func() { f.Fault("/exec/", dockerd.Says(500, "")) },
	} {
		f.Set("app", 1, "running", 1)
		e := newExecs(t, f, 0, "")
		release := e.hang("e1", "e2", "e3", "e4", "e5", "e6")
		ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
		done := make(chan error, 1)
		go func() {
			_, err := s.Exec(ctx, "app", []string{name}, nil, new(bytes.Buffer))
			done <- err
		}()
		s.until("it runs", func() bool { return f.Count("POST /v1.41/exec/e1/start") > 0 && e.count() == 1 })
		harm()
		if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want an error that is no timeout", name, err)
		}
		cancel()
		release()
	}
}

// An agent that stops cuts a command short, and the error is the stop's.
func TestDockerExecCancelled(t *testing.T) {
	s, f := running(t)
	defer newExecs(t, f, 0, "").hang("e1")()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Exec(ctx, "app", []string{"check"}, nil, new(bytes.Buffer))
		done <- err
	}()
	s.until("it runs", func() bool { return f.Count("POST /v1.41/exec/e1/start") == 1 })
	cancel()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the stop", err)
	}
}

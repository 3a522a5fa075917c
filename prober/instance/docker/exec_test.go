// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// A command runs with its variables. Its output comes in order, and its exit code is the
// daemon's. If there was a process, the exit code may be 127, too.
func TestDockerExec(t *testing.T) {
	s, f := running(t)
	for _, exit := range []int{0, 3, 127, 137} {
		e := newExecs(t, f, exit, frame(1, "out ")+frame(2, "err ")+frame(1, "")+frame(1, strings.Repeat("x", 60000)))
		code, output, err := s.in(10*time.Second, "check", "$HOME")
		if want := "out err " + strings.Repeat("x", 60000); code != exit || output != want || err != nil {
			t.Errorf("got %d, %.20q, %v; want %d", code, output, err, exit)
		}
		got, _ := json.Marshal(e.created)
		if want := `[{"AttachStderr":true,"AttachStdout":true,"Cmd":["check","$HOME"],"Env":["A=b"]}]`; string(got) != want {
			t.Errorf("created %s, want %s", got, want)
		}
	}
}

// If a daemon forgets processes, exit code 127 still counts as an exit code.
func TestDockerExecForgottenProcess(t *testing.T) {
	s, f := running(t)
	for _, output := range []string{frame(2, "sh: curl: not found\n"), frame(1, "Error: x"), ""} {
		newExecs(t, f, 127, output).pid = 0
		if code, _, err := s.in(10*time.Second, "sh"); code != 127 || err != nil {
			t.Errorf("%q: got %d, %v; want 127", output, code, err)
		}
	}
}

// A command that has closed its output early ends when its process ends.
func TestDockerExecClosesOutput(t *testing.T) {
	s, f := running(t)
	e := newExecs(t, f, 5, "")
	e.mu.Lock()
	e.running["e1"] = true
	e.mu.Unlock()
	done := make(chan int, 1)
	go func() {
		code, _, err := s.in(10*time.Second, "check")
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	s.until("it was looked at 3 times", func() bool { return f.Count("GET /v1.41/exec/e1/json") >= 3 })
	e.mu.Lock()
	e.running["e1"] = false
	e.mu.Unlock()
	if code := <-done; code != 5 {
		t.Errorf("got %d, want 5", code)
	}
}

// The error of a command that could not start quotes the daemon, and is never a timeout.
func TestDockerExecNotStarted(t *testing.T) {
	s, f := running(t)
	for name, c := range map[string]struct {
		prepare func()
		want    string
	}{
		"no such file": {func() {
			newExecs(t, f, 127, frame(1, "OCI runtime exec failed: no such file\r\n")).pid = 0
		}, "OCI runtime exec failed: no such file"},
		"cannot be executed": {func() { newExecs(t, f, 126, frame(1, "OCI runtime exec failed: denied\r\n")).pid = 0 }, "denied"},
		"of podman": {func() {
			newExecs(t, f, 126, frame(2, "Error: runc: exec failed: denied: OCI permission denied\r\n")).pid = 0
		}, "OCI permission denied"},
		"refused": {func() {
			f.Fault("/containers/"+dockerd.ID(1)+"/exec", dockerd.Says(409, `{"message":"Container is paused"}`))
		}, "create the exec: status 409: Container is paused"},
		"no ID": {func() { f.Fault("/containers/"+dockerd.ID(1)+"/exec", dockerd.Says(201, `{}`)) }, "no ID"},
		"not started": {func() {
			newExecs(t, f, 0, "")
			f.Fault("/exec/", dockerd.Says(400, `{"message":"OCI: nope"}`))
		}, "start the exec: status 400: OCI: nope"},
		"hangs at create": {func() { f.Fault("/containers/"+dockerd.ID(1)+"/exec", dockerd.Hangs) }, "deadline"},
		"hangs at start": {func() {
			newExecs(t, f, 0, "")
			f.Fault("/exec/", dockerd.Hangs)
		}, "deadline"},
	} {
		c.prepare()
		timeout := 10 * time.Second
		if c.want == "deadline" {
			timeout = soon
		}
		_, _, err := s.in(timeout, name)
		if err == nil || !strings.Contains(err.Error(), c.want) || !isNotStarted(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v; want %q, not started", name, err, c.want)
		}
	}
}

// If no container runs, the source starts nothing and does not ask the daemon.
func TestDockerExecNoContainer(t *testing.T) {
	f := dockerd.New(t)
	s := newWorld(t, f.Socket)
	e := newExecs(t, f, 0, "")
	check := func(want string) {
		t.Helper()
		if _, _, err := s.in(time.Second, "check"); err == nil || !strings.Contains(err.Error(), want) || !isNotStarted(err) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check("the container is unknown")
	f.Set("app", 1, "paused", 1)
	s.watch("app")
	s.run()
	s.await("app", life(1, 1, gate.PhaseUnknown))
	s.until("up", s.Up)
	check("paused")
	f.Set("app", 1, "restarting", 1)
	f.Event("die", 1)
	s.await("app", life(1, 1, gate.Waiting))
	check("does not run")
	if n := e.count(); n != 0 {
		t.Errorf("%d created, want 0", n)
	}
}

// Output that is cut short or not in frames, and an exit code that the daemon does not know,
// are errors that say nothing about the target.
func TestDockerExecBroken(t *testing.T) {
	s, f := running(t)
	for name, output := range map[string]string{
		"half a header": "\x01\x00\x00",
		"half a frame":  frame(1, "whole")[:10],
		"nonsense":      "HTTP/1.1 200 OK",
		"fifth stream":  frame(5, "x"),
		"the daemon's":  frame(3, "lost the container"),
		"half of that":  frame(3, "lost the container")[:12],
	} {
		newExecs(t, f, 0, output)
		_, _, err := s.in(10*time.Second, name)
		if err == nil || isNotStarted(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	newExecs(t, f, nil, "")
	if _, _, err := s.in(10*time.Second, "no code"); err == nil || !strings.Contains(err.Error(), "exit code") {
		t.Errorf("got %v, want an error about the exit code", err)
	}
}

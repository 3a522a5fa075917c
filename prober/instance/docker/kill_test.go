// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// If the agent sees the process of a hung command, it kills the process and does not await its
// end. It kills neither a process that is not the command's nor a process whose command has
// ended.
func TestDockerExecKills(t *testing.T) {
	s, f := running(t)
	s.execGrace = 2 * time.Second
	s.proc = t.TempDir()
	start := func(cgroup string) (*exec.Cmd, <-chan error) {
		t.Helper()
		child := exec.CommandContext(t.Context(), "sleep", "600")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.proc, strconv.Itoa(child.Process.Pid))
		os.Mkdir(dir, 0o700)
		os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/docker/"+cgroup+"\n"), 0o600)
		os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tsleep\nNSpid:\t4711\t12\n"), 0o600)
		ended := make(chan error, 1)
		go func() { ended <- child.Wait() }()
		t.Cleanup(func() { child.Process.Kill() })
		return child, ended
	}

	child, ended := start(dockerd.ID(1))
	e := newExecs(t, f, 137, "")
	e.pid = child.Process.Pid
	release := e.hang("e1")
	died := make(chan struct{})
	go func() {
		defer close(died)
		<-ended
		release()
	}()
	if _, _, err := s.in(soon, "check"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
	<-died
	if got := s.targets["app"].unfinished; len(got) != 0 {
		t.Errorf("the source awaits %d commands, want 0", len(got))
	}

	other, alive := start(dockerd.ID(2))
	e = newExecs(t, f, 137, "")
	e.pid = other.Process.Pid
	release = e.hang("e1")
	s.in(soon, "other container")
	release()
	run := &run{d: s.Source, target: s.targets["app"], container: dockerd.ID(2), id: "e1"}
	run.kill(t.Context(), other.Process.Pid) // the process' command has ended
	run.kill(t.Context(), 1)
	select {
	case err := <-alive:
		t.Errorf("the source killed somebody else's process: %v", err)
	default:
	}
}

// The source does not await a command that timed out under an instance that is no longer in
// view.
func TestDockerExecOutlived(t *testing.T) {
	s, f := running(t)
	release := newExecs(t, f, 0, "").hang("e1")
	defer release()
	done := make(chan error, 1)
	go func() {
		_, _, err := s.in(500*time.Millisecond, "check")
		done <- err
	}()
	s.until("it runs", func() bool { return f.Count("POST /v1.41/exec/e1/start") == 1 })
	s.Forget("app")
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
	s.watch("app")
	s.await("app", life(1, 1, gate.Running))
	if n := len(s.targets["app"].unfinished); n != 0 {
		t.Errorf("the source awaits %d commands, want 0", n)
	}
}

// A process belongs to a container only if it is in the container's cgroup and in a namespace
// just below. If the caller asks for the container's first process, its number there must be 1,
// otherwise another. The number alone never decides.
func TestDockerProcess(t *testing.T) {
	if containerPID("/proc", os.Getpid(), "no such container", false) || containerPID("/proc", 0, "", true) || containerPID("/proc", 1<<30, "x", true) {
		t.Error("a foreign process counts as a container's")
	}
	for _, c := range []struct {
		status string
		first  bool
		want   bool
	}{
		{"Name:\tapp\nNSpid:\t4711\t1\nX:\n", true, true},
		{"NSpid:\t4711\t1\n", false, false},
		{"NSpid:\t4711\t27\n", false, true},
		{"NSpid:\t4711\t27\n", true, false},
		{"NSpid:\t27\n", false, false},
		{"NSpid:\t9\t4711\t27\n", false, false},
		{"Name:\tapp\n", false, false},
	} {
		if got := nestedPID(c.status, c.first); got != c.want {
			t.Errorf("%q, first %v: got %v", c.status, c.first, got)
		}
	}
}

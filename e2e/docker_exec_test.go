// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/exec"
)

// dockerAttempt runs a command of the application inside its container.
func dockerAttempt(t *testing.T, s *dockerSeen, timeout time.Duration, command ...string) (action.Outcome, error) {
	t.Helper()
	target := &config.Target{Name: "app", Env: []config.EnvVar{{Name: "COLOUR", Value: "blue"}}}
	begin := time.Now()
	got, err := exec.NewIn(s, target, &config.Probe{Exec: &config.Exec{Command: command}, Timeout: timeout})(t.Context())
	if took := time.Since(begin); took > timeout+time.Second {
		t.Errorf("%q: took %v with a timeout of %v", command, took, timeout)
	}
	return got, err
}

// processes counts the processes of a command in the container app.
func (w *dockerWorld) processes(t *testing.T, command string) (n int) {
	t.Helper()
	id := w.docker(t, "inspect", "-f", "{{.Id}}", "app")
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if strings.ReplaceAll(string(line), "\x00", " ") == command+" " && strings.Contains(string(groups), id) {
			n++
		}
	}
	return n
}

// An exec probe runs in the container, with the kubelet's rules. Exit code 0 is a success, any
// other code is a failure, and a command that cannot be started says nothing. The agent keeps
// 10 KiB of output.
func dockerExec(t *testing.T, w *dockerWorld) {
	t.Setenv("OF_THE_AGENT", "secret")
	w.run(t, "app", "--env", "SHAPE=round", "app:e2e")
	s := watchDocker(t, w, byName)
	s.running(t, gate.Instance{})
	for _, c := range []struct {
		command string
		want    action.Outcome
		wantErr bool
	}{
		{command: "/app exit 0 well", want: action.Outcome{Success: true, Output: "well\n"}},
		{command: "/app exit 3 not well", want: action.Outcome{Reason: action.ExitCode, ExitCode: 3, Output: "not\nwell\n"}},
		{command: "/app exit 127 OCI runtime exec failed", want: action.Outcome{Reason: action.ExitCode, ExitCode: 127, Output: "OCI\nruntime\nexec\nfailed\n"}},
		{command: "/app exit 137", want: action.Outcome{Reason: action.ExitCode, ExitCode: 137}},
		{command: "/app turns", want: action.Outcome{Success: true, Output: "out0 err0 out1 err1 out2 err2 "}},
		{command: "/app env COLOUR", want: action.Outcome{Success: true, Output: "blue"}},
		{command: "/app env SHAPE", want: action.Outcome{Success: true, Output: "round"}},
		{command: "/app env OF_THE_AGENT", want: action.Outcome{Success: true}},
		{command: "/no/such/thing x", want: action.Outcome{Reason: action.ExecStart}, wantErr: true},
		{command: "nosuchthing", want: action.Outcome{Reason: action.ExecStart}, wantErr: true},
		{command: "/etc", want: action.Outcome{Reason: action.ExecStart}, wantErr: true},
	} {
		got, err := dockerAttempt(t, s, 10*time.Second, strings.Fields(c.command)...)
		if c.wantErr {
			t.Logf("%s: %v", c.command, err)
			got.Output = ""
		}
		if got != c.want || (err != nil) != c.wantErr {
			t.Errorf("%s: got %+v, %v; want %+v, error %v", c.command, got, err, c.want, c.wantErr)
		}
	}
	got, err := dockerAttempt(t, s, 20*time.Second, "/app", "flood")
	if !got.Success || len(got.Output) != 10<<10 || err != nil {
		t.Errorf("flood: got %d bytes, %+v, %v; want success with 10 KiB", len(got.Output), got.Reason, err)
	}
	begin := time.Now()
	for range 10 {
		dockerAttempt(t, s, 10*time.Second, "/app", "exit", "0")
	}
	t.Logf("an attempt takes %v", time.Since(begin)/10)

	w.docker(t, "pause", "app")
	got, err = dockerAttempt(t, s, 10*time.Second, "/app", "exit", "0")
	if err == nil || got.Reason != action.ExecStart {
		t.Errorf("paused: got %+v, %v; want an error, reason exec_start", got, err)
	}
	w.docker(t, "unpause", "app")
}

// A command that hangs is a timeout, and three attempts leave one such command in the
// container.
func dockerExecHangs(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	s := watchDocker(t, w, byName)
	first := s.running(t, gate.Instance{})
	want := action.Outcome{Reason: action.Timeout, Output: `command "/app hang" timed out`}
	for range 3 {
		if got, err := dockerAttempt(t, s, time.Second, "/app", "hang"); got != want || err != nil {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if n := w.processes(t, "/app hang"); n != 1 {
			t.Errorf("%d commands hang in the container, want 1", n)
		}
	}
	if got, err := dockerAttempt(t, s, 10*time.Second, "/app", "exit", "0"); !got.Success || err != nil {
		t.Errorf("another command: got %+v, %v; want success", got, err)
	}
	w.docker(t, "restart", "-t", "0", "app")
	s.running(t, first)
	if got, err := dockerAttempt(t, s, time.Second, "/app", "hang"); got != want || err != nil {
		t.Errorf("in the next life: got %+v, %v; want %+v", got, err, want)
	}
}

// insideEnv makes this test binary the agent that runs among the daemon's processes. Its value
// is the socket.
const insideEnv = "E2E_DOCKER_INSIDE"

// If an agent sees the processes of the container, it kills a command that hangs, and none is
// left.
func dockerExecKilled(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := w.inside(self, "-test.run", "^TestDockerInside$", "-test.v")
	agent.Env = append(os.Environ(), insideEnv+"="+w.socket)
	if out, err := agent.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	testutil.Within(t, 10*time.Second, "none hangs", func() bool { return w.processes(t, "/app hang") == 0 })
	if n := w.processes(t, "/app"); n != 1 {
		t.Errorf("%d processes of the application run, want 1", n)
	}
}

// TestDockerInside is the agent of dockerExecKilled. It knows the container's process.
func TestDockerInside(t *testing.T) {
	socket := os.Getenv(insideEnv)
	if socket == "" {
		t.Skip("it is part of another test") //nolint:forbidigo // nothing is lacking
	}
	s := watchDocker(t, &dockerWorld{socket: socket}, byName)
	s.running(t, gate.Instance{})
	if s.Describe("app").PID == 0 {
		t.Error("the source does not know the container's process")
	}
	for range 2 {
		if got, err := dockerAttempt(t, s, time.Second, "/app", "hang"); got.Reason != action.Timeout || err != nil {
			t.Errorf("got %+v, %v; want a timeout", got, err)
		}
	}
}

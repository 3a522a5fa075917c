// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

func TestMain(m *testing.M) { actiontest.Main(m, helpers, systemHelpers) }

// helpers are commands for every system; systemHelpers adds commands for the present system.
var helpers = map[string]func(args []string){
	// print writes each further argument on a line, and exits with the first.
	"print": func(args []string) {
		for _, arg := range args[1:] {
			fmt.Println(arg)
		}
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	},
	// turns writes to stdout and stderr by turns.
	"turns": func([]string) {
		for i := range 5 {
			fmt.Fprintf(os.Stdout, "out%d ", i)
			fmt.Fprintf(os.Stderr, "err%d ", i)
		}
	},
	// flood writes the given number of bytes and exits with status 3.
	"flood": func(args []string) {
		n, _ := strconv.Atoi(args[0])
		chunk := []byte(strings.Repeat("0123456789abcdef", 4096))
		for n > 0 {
			wrote, err := os.Stdout.Write(chunk[:min(n, len(chunk))])
			if err != nil {
				os.Exit(4)
			}
			n -= wrote
		}
		os.Exit(3)
	},
	// look writes its stdin, directory and environment.
	"look": func(args []string) {
		in, err := io.ReadAll(os.Stdin)
		dir, _ := os.Getwd()
		fmt.Printf("stdin=%q %v dir=%s", in, err, dir)
		for _, name := range args {
			fmt.Printf(" %s=%s", name, os.Getenv(name))
		}
	},
	// sleep makes a file and then hangs.
	"sleep": func(args []string) {
		os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
		linger()
	},
}

// linger is how a helper hangs: for longer than any test waits, but not for ever if nobody
// kills the helper.
func linger() { <-time.After(time.Minute) }

// helperExec returns an exec action that runs a helper.
func helperExec(t testing.TB, timeout time.Duration, helper string, args ...string) action.Func {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := &config.Target{Name: "app", Env: []config.EnvVar{{Name: actiontest.HelperEnv, Value: helper}}}
	return commandExec(target, timeout, append([]string{self}, args...)...)
}

// commandExec returns an exec action of t that runs a command.
func commandExec(t *config.Target, timeout time.Duration, command ...string) action.Func {
	return New(t, &config.Probe{Exec: &config.Exec{Command: command}, Timeout: timeout})
}

// Exit status 0 is a success, any other status a failure, and the output is the command's.
func TestExecExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want action.Outcome
	}{
		{[]string{"0"}, action.Outcome{Success: true}},
		{[]string{"0", "all", "well"}, action.Outcome{Success: true, Output: "all\nwell\n"}},
		{[]string{"1"}, action.Outcome{Reason: action.ExitCode, ExitCode: 1}},
		{[]string{"3", "unwell"}, action.Outcome{Reason: action.ExitCode, Output: "unwell\n", ExitCode: 3}},
		{[]string{"255"}, action.Outcome{Reason: action.ExitCode, ExitCode: 255}},
	} {
		if got := actiontest.Attempt(t, helperExec(t, 10*time.Second, "print", c.args...)); got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.args, got, c.want)
		}
	}
}

// stdout and stderr arrive in the order in which they were written.
func TestExecInterleavesOutput(t *testing.T) {
	const want = "out0 err0 out1 err1 out2 err2 out3 err3 out4 err4 "
	if got := actiontest.Attempt(t, helperExec(t, 10*time.Second, "turns")); got.Output != want {
		t.Errorf("got %q, want %q", got.Output, want)
	}
}

// The agent keeps 10240 bytes of 10 MB. The command still writes everything and exits with 3.
func TestExecCapsOutput(t *testing.T) {
	for n, want := range map[int]int{10239: 10239, 10240: 10240, 10241: 10240, 10 << 20: 10240} {
		got := actiontest.Attempt(t, helperExec(t, 20*time.Second, "flood", strconv.Itoa(n)))
		if got.Reason != action.ExitCode || len(got.Output) != want {
			t.Errorf("%d bytes: reason %q and %d bytes; want exit_code and %d", n, got.Reason, len(got.Output), want)
		}
		if !strings.HasPrefix(got.Output, "0123456789abcdef01") {
			t.Errorf("%d bytes: output begins %q, not with the first bytes", n, got.Output[:20])
		}
	}
}

// A command sees an empty stdin, the agent's directory and environment, and the target's
// variables, which override the agent's.
func TestExecSurroundings(t *testing.T) {
	t.Setenv("OF_AGENT", "agent")
	t.Setenv("OF_BOTH", "agent")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	target := &config.Target{Env: []config.EnvVar{{Name: actiontest.HelperEnv, Value: "look"}, {Name: "OF_BOTH", Value: "target"}}}
	got := actiontest.Attempt(t, commandExec(target, 10*time.Second, self, "OF_AGENT", "OF_BOTH"))
	want := action.Outcome{Success: true, Output: `stdin="" <nil> dir=` + dir + " OF_AGENT=agent OF_BOTH=target"}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// $(NAME) is a variable of the target, an unknown variable stays as it is, $$ is a $, and no
// shell sees the result (rules 7.8 and 16.4).
func TestExecExpandsVariables(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := &config.Target{Env: []config.EnvVar{{Name: actiontest.HelperEnv, Value: "print"}, {Name: "A", Value: "some script"}}}
	got := actiontest.Attempt(t, commandExec(target, 10*time.Second, self, "0", "$(A) $(B) $$(A)", "$HOME", "a;b|c *"))
	if want := "some script $(B) $(A)\n$HOME\na;b|c *\n"; got.Output != want {
		t.Errorf("got %q, want %q", got.Output, want)
	}
}

// A command that cannot be started is an error with reason exec_start and counts for nothing.
// Neither text shows the value of a variable.
func TestExecNotStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cr3t"
	target := &config.Target{Env: []config.EnvVar{{Name: "TOKEN", Value: secret}}}
	for name, c := range map[string]struct {
		command []string
		want    error
	}{
		"no such file":           {[]string{filepath.Join(dir, "none"), "$(TOKEN)"}, fs.ErrNotExist},
		"no such file, expanded": {[]string{filepath.Join(dir, "$(TOKEN)")}, fs.ErrNotExist},
		"not in PATH, expanded":  {[]string{"no-such-command-$(TOKEN)"}, nil},
		"not executable":         {[]string{plain}, fs.ErrPermission},
		"directory":              {[]string{dir}, nil},
		"NUL in an argument":     {[]string{os.Args[0], "\x00$(TOKEN)"}, nil},
	} {
		got, err := commandExec(target, 10*time.Second, c.command...)(t.Context())
		if err == nil || got.Success || got.Reason != action.ExecStart || got.Output != err.Error() {
			t.Errorf("%s: got %+v, error %v; want reason exec_start with the error as output", name, got, err)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: error %v is not %v", name, err, c.want)
		}
		if !strings.Contains(err.Error(), strconv.Quote(c.command[0])) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %q; want the command as it is configured, and no secret", name, err)
		}
	}
}

// A command that takes longer than its timeout is a failure, not an error, at the timeout. The
// text shows the command as configured.
func TestExecTimeout(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := &config.Target{Env: []config.EnvVar{{Name: actiontest.HelperEnv, Value: "sleep"}, {Name: "TOKEN", Value: "s3cr3t"}}}
	file := filepath.Join(t.TempDir(), "pid")
	begin := time.Now()
	got := actiontest.Attempt(t, commandExec(target, 300*time.Millisecond, self, file, "$(TOKEN)"))
	if took := time.Since(begin); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %v, want little more than 300ms", took)
	}
	want := action.Outcome{Reason: action.Timeout, Output: fmt.Sprintf("command %q timed out", self+" "+file+" $(TOKEN)")}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// A text is never longer than an output may be, however long the command is.
func TestExecTimeoutTextIsCapped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	got := actiontest.Attempt(t, helperExec(t, 50*time.Millisecond, "sleep", file, strings.Repeat("x", 3*action.MaxOutput)))
	if got.Reason != action.Timeout || len(got.Output) != action.MaxOutput {
		t.Errorf("reason %q and %d bytes; want timeout and %d", got.Reason, len(got.Output), action.MaxOutput)
	}
}

// A stop ends a running command at once, with the context's error.
func TestExecStop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := helperExec(t, time.Minute, "sleep", file)(ctx)
		ended <- err
	}()
	testutil.Until(t, "the command runs", func() bool {
		pid, err := os.ReadFile(file)
		return err == nil && len(pid) > 0
	})
	stop()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still running 10s after the stop")
	}
}

// Once the context is done, the agent starts no command, and so does not notice a command that
// cannot be started.
func TestExecStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := commandExec(&config.Target{}, time.Minute, "/no/such/command")(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// The agent searches the PATH of the command's own environment.
func TestExecSearchPath(t *testing.T) {
	for want, env := range map[string][]string{
		"":         {"HOME=/root", "PATHS=/x", "XPATH=/y"},
		"/bin":     {"PATH=/bin", "HOME=/root"},
		"/opt/bin": {"A=b", "PATH=/opt/bin", "PATH=/bin"},
		"a=b":      {"PATH=a=b"},
	} {
		if got := searchPath(env); got != want {
			t.Errorf("%q: got %q, want %q", env, got, want)
		}
	}
}

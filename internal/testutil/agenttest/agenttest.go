// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package agenttest runs agents for tests, in the test's process or in processes of their own,
// and asks them.
package agenttest

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// Agent is a running agent.
type Agent struct {
	Log         *testutil.Log
	Web, Health string    // base URLs
	Cmd         *exec.Cmd // nil: the agent runs in this process

	t      testing.TB
	cancel context.CancelFunc
	exit   chan int
	code   int
	ended  bool
	once   sync.Once
}

// New returns an agent that does not run yet.
func New(t testing.TB) *Agent {
	return &Agent{Log: &testutil.Log{}, t: t, exit: make(chan int, 1)}
}

// Run runs the agent in this process until the end of the test. run returns an exit code once
// its context is done.
func (a *Agent) Run(run func(ctx context.Context, log io.Writer) int) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	a.cancel = cancel
	go func() { a.exit <- run(ctx, a.Log) }()
	a.t.Cleanup(func() { a.Stop() })
}

// StartProcess runs the agent in a process of its own, and waits until it serves. If shell is
// not empty, a shell runs it before the agent's command line.
func StartProcess(t testing.TB, shell string, args ...string) *Agent {
	t.Helper()
	cmd := Command(t, args...)
	if shell != "" {
		cmd = exec.Command("sh", append([]string{"-c", shell + `; exec "$0" "$@"`}, cmd.Args...)...)
	}
	a := New(t)
	cmd.Stderr = a.Log
	a.Begin(cmd)
	a.WaitUntilServing(HasHealth(args))
	return a
}

// HasHealth reports whether an agent with these flags has a health listener.
func HasHealth(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--health.listen-address") })
}

// Begin runs the agent as cmd until the end of the test.
func (a *Agent) Begin(cmd *exec.Cmd) {
	a.t.Helper()
	a.Cmd = cmd
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.cancel = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	go func() {
		_ = cmd.Wait()
		a.exit <- cmd.ProcessState.ExitCode()
	}()
	a.t.Cleanup(func() { a.Stop() })
}

// address matches the address of a listener in a line of the log, logfmt or JSON.
var address = regexp.MustCompile(`address"?[=:]"?(127\.0\.0\.1:\d+)`)

// addressIn returns the base URL from the first line of the log with that message.
func (a *Agent) addressIn(message string) string {
	for line := range strings.Lines(a.Log.String()) {
		if m := address.FindStringSubmatch(line); m != nil && strings.Contains(line, message) {
			return "http://" + m[1]
		}
	}
	return ""
}

// WaitUntilServing waits for the web listener and, if health is true, for the health listener.
// It reads their addresses from the log.
func (a *Agent) WaitUntilServing(health bool) {
	a.t.Helper()
	a.Eventually("the agent serves", func() error {
		select {
		case code := <-a.exit:
			a.t.Fatalf("exit %d instead of serving:\n%s", code, a.Log)
		default:
		}
		a.Web, a.Health = a.addressIn("Listening on"), a.addressIn("serving the health endpoints")
		if a.Web == "" || health && a.Health == "" {
			return fmt.Errorf("no address in the log:\n%s", a.Log)
		}
		return nil
	})
}

// Stop ends the agent and returns its exit code.
func (a *Agent) Stop() int {
	a.t.Helper()
	a.once.Do(func() {
		a.cancel()
		a.code = a.Wait()
	})
	return a.code
}

// Wait returns the exit code once the agent has ended by itself.
func (a *Agent) Wait() int {
	a.t.Helper()
	if a.ended {
		return a.code
	}
	select {
	case a.code = <-a.exit:
		a.ended = true
		return a.code
	case <-time.After(20 * time.Second):
		a.t.Fatalf("the agent does not end:\n%s", a.Log)
		return -1
	}
}

// Eventually waits until check returns nil.
func (a *Agent) Eventually(what string, check func() error) {
	a.t.Helper()
	testutil.Eventually(a.t, what, check)
}

// Says waits until the answer of a URL has that status and contains that text.
func (a *Agent) Says(url string, status int, text string) {
	a.t.Helper()
	a.Eventually(fmt.Sprintf("%s answers %d %q", url, status, text), func() error {
		got, body := testutil.Get(a.t, url)
		if got != status || !strings.Contains(body, text) {
			return fmt.Errorf("%d %s\n%s", got, body, a.Log)
		}
		return nil
	})
}

// Is checks the present answer of a URL.
func (a *Agent) Is(url string, status int, text string) {
	a.t.Helper()
	if got, body := testutil.Get(a.t, url); got != status || !strings.Contains(body, text) {
		a.t.Errorf("%s answers %d %q, want %d %q", url, got, body, status, text)
	}
}

// Logs waits until the log has a line with all of these words.
func (a *Agent) Logs(words ...string) {
	a.t.Helper()
	a.Eventually(fmt.Sprintf("a line with %q in the log", words), func() error {
		for line := range strings.Lines(a.Log.String()) {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return nil
			}
		}
		return fmt.Errorf("the log is\n%s", a.Log)
	})
}

// Metric returns the value of a series, or "" if there is no such series.
func (a *Agent) Metric(series string) string {
	a.t.Helper()
	_, body := testutil.Get(a.t, a.Web+"/metrics")
	return testutil.Series(body, series)
}

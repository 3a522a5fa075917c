// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// bareContext is a context for helpers, which have no test to take one from.
func bareContext() context.Context { return context.Background() }

// An agent that is PID 1 leaves no zombie, and every command's own exit status arrives.
func TestReapOrphansAsPID1(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), actiontest.HelperEnv+"=init")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		needs.Missing(t, "a PID namespace: ", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, and the agent says:\n%s", err, out.String())
	}
}

// beInit is an agent with PID 1.
func beInit([]string) {
	if os.Getpid() != 1 {
		panic("not PID 1")
	}
	os.Unsetenv(actiontest.HelperEnv)
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	orphan := &config.Target{Env: []config.EnvVar{{Name: actiontest.HelperEnv, Value: "orphan"}}}

	// Without the reaper, the orphan comes to this process and stays.
	if got, err := commandExec(orphan, time.Minute, self, "5")(bareContext()); err != nil || got.Reason != action.ExitCode {
		panic(fmt.Sprint(got, err))
	}
	await("a zombie to show that orphans come to us", func() bool {
		pid, err := exited(unix.P_ALL, 0, unix.WNOHANG)
		return err == nil && pid != 0
	})

	ctx, stop := context.WithCancel(bareContext())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ReapOrphans(ctx)
	}()
	await("no zombie once the reaper runs", noChildren)

	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for turn := range 25 {
				code := (worker*25 + turn) % 7
				script := fmt.Sprintf("echo %d; exit %d", code, code)
				switch {
				case turn == 3: // leaves its group, and leaves an orphan of an orphan
					got, err := commandExec(orphan, time.Minute, self, fmt.Sprint(code))(ctx)
					check(code, got, err)
					continue
				case turn%3 == 0: // leaves an orphan in its own group, which is killed
					script = "sleep 60 & " + script
				case turn%3 == 1: // a child dies while the command runs
					script = "(sleep 0.01 &) ; " + script
				}
				got, err := shell(time.Minute, script)(ctx)
				check(code, got, err)
			}
		})
	}
	wg.Wait()
	await("no child and no zombie at the end", noChildren)
	if len(children.own) != 0 {
		panic(fmt.Sprintf("%d entries are left in own", len(children.own)))
	}
	stop()
	<-stopped
}

func check(code int, got action.Outcome, err error) {
	if err != nil || got.Success != (code == 0) || code != 0 && got.Reason != action.ExitCode {
		panic(fmt.Sprintf("exit status %d: got %+v, error %v", code, got, err))
	}
}

func await(what string, ok func() bool) {
	for end := time.Now().Add(20 * time.Second); !ok(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			panic("waited in vain for " + what)
		}
	}
}

// The reaper spares a child of the agent that dies before the agent has entered the child as
// its own.
func TestReapSparesChildBeingStarted(t *testing.T) {
	children.mu.Lock()
	starting := children.starting
	starting.Add(1)
	children.mu.Unlock()
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit 3"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	testutil.Until(t, "the child has died", func() bool { return state(p.Pid) == 'Z' })

	searched := make(chan bool)
	go func() {
		_, ok := orphan()
		searched <- ok
	}()
	testutil.Until(t, "the reaper suspects the child", func() bool {
		children.mu.Lock()
		defer children.mu.Unlock()
		return children.suspect == p.Pid
	})
	// Neither another start nor the search waits for the other.
	if got := actiontest.Attempt(t, shell(10*time.Second, "exit 0")); !got.Success {
		t.Errorf("got %+v during a search", got)
	}
	select {
	case <-searched:
		t.Error("the search did not wait for the start")
	default:
	}

	defer p.Release()
	c := &child{pid: p.Pid}
	claim(c)
	starting.Done()
	if ok := <-searched; ok {
		t.Error("the reaper took the child for an orphan")
	}
	if reapOrphan() {
		t.Error("a dead child of the agent did not end the search")
	}
	if end, err := waitChild(c); err != nil || end.ExitCode() != 3 {
		t.Errorf("got %v, error %v; want exit status 3", end, err)
	}
}

// A dead child of the agent hides an orphan from the search. When the agent has reaped its
// child, the next search begins, although no other child dies.
func TestReapOrphansBehindOwnChild(t *testing.T) {
	// The kernel shows the children of a thread in the order of their birth.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := startChild("/bin/sh", []string{"sh", "-c", "exit 3"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Release()
	testutil.Until(t, "both children are dead", func() bool { return state(own.pid) == 'Z' && state(foreign.Pid) == 'Z' })

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ReapOrphans(ctx)
	}()
	// The first search must find no child that it may reap.
	testutil.Until(t, "the first search is over", func() bool {
		stacks := make([]byte, 1<<20)
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if header, _, _ := strings.Cut(g, "\n"); strings.Contains(header, "[select") && strings.Contains(g, ".ReapOrphans(") {
				return true
			}
		}
		return false
	})
	if end, err := waitChild(own); err != nil || end.ExitCode() != 3 {
		t.Errorf("got %v, error %v; want exit status 3", end, err)
	}
	testutil.Until(t, "the orphan is reaped", noChildren)
	stop()
	<-stopped
}

// ReapOrphans reaps orphans from before its beginning, and returns when its context ends.
func TestReapOrphansReturns(t *testing.T) {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	testutil.Until(t, "the orphan has died", func() bool { return state(p.Pid) == 'Z' })
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ReapOrphans(ctx)
	}()
	testutil.Until(t, "the orphan is reaped", noChildren)
	stop()
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("ReapOrphans still runs 10s after the stop")
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// At the timeout the whole group dies, even processes that ignore SIGTERM.
func TestExecTimeoutKillsGroup(t *testing.T) {
	pids := timedOut(t, "family", "stay")
	testutil.Until(t, "all three children are dead", func() bool { return len(pids) == 3 && dead(pids) })
}

// When a command exits, the other processes of its group die: no process piles up or runs into
// the next turn. The exit status counts, and the attempt takes no longer.
func TestExecKillsLeftovers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	begin := time.Now()
	if got := actiontest.Attempt(t, helperExec(t, 30*time.Second, "family", file, "exit")); !got.Success {
		t.Fatalf("got %+v, want success", got)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v: the attempt waited for processes that the command left behind", took)
	}
	pids := recorded(t, file)
	testutil.Until(t, "all three children are dead", func() bool { return dead(pids) })
}

// A process that has left the group is out of reach, and may hold the output open or go on
// writing. The attempt ends all the same, with the output of the command.
func TestExecEscapedProcessDoesNotStall(t *testing.T) {
	for helper, output := range map[string]string{"escape": "bye", "chatter": ""} {
		file := filepath.Join(t.TempDir(), "pids")
		begin := time.Now()
		got := actiontest.Attempt(t, helperExec(t, 30*time.Second, helper, file, "exit"))
		took, pids := time.Since(begin), recorded(t, file)
		if !got.Success || !strings.HasPrefix(got.Output, output) {
			t.Errorf("%s: got %+v, want success and output %q", helper, got, output)
		}
		if took > 10*time.Second {
			t.Errorf("%s: took %v", helper, took)
		}
		if helper == "escape" && dead(pids) { // the closed pipe kills chatter
			t.Error("the process has not escaped: the test shows nothing")
		}
		unix.Kill(pids[0], unix.SIGKILL)
	}
}

// An agent that reads late loses none of a command's output, even if another process still
// holds the pipe open.
func TestExecReadsOutputAfterDeadline(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fmt.Fprint(w, "written in time")
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := readOutput(r, nil); got != "written in time" {
		t.Errorf("got %q", got)
	}
}

// An escaped process does not stall an attempt at its timeout either.
func TestExecEscapedProcessDoesNotStallTimeout(t *testing.T) {
	begin := time.Now()
	pids := timedOut(t, "escape", "stay")
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if dead(pids) {
		t.Error("the process has not escaped: the test shows nothing")
	}
	unix.Kill(pids[0], unix.SIGKILL)
}

// The timeout kills a command that has moved to the agent's own group, but not the agent.
func TestExecTimeoutKillsRegroupedCommand(t *testing.T) {
	if pids := timedOut(t, "regroup"); !dead(pids) {
		t.Errorf("%v still runs", pids)
	}
}

// A command that a signal ends is a failure with reason signal, even for SIGKILL, as from the
// OOM killer. Only the agent's own SIGKILL is a timeout.
func TestExecSignal(t *testing.T) {
	for script, want := range map[string]action.Outcome{
		"kill -KILL $$":             {Reason: action.Signal, Output: "signal: killed", ExitCode: 128 + 9},
		"kill -TERM $$":             {Reason: action.Signal, Output: "signal: terminated", ExitCode: 128 + 15},
		"echo dying; kill -USR1 $$": {Reason: action.Signal, Output: "dying\n", ExitCode: 128 + 10}, // nohup does not ignore SIGUSR1
		"sh -c 'kill -KILL $$'; :":  {Success: true, Output: "Killed\n"},
		"kill -STOP $$; echo never": {Reason: action.Timeout},
	} {
		timeout := 30 * time.Second
		if want.Reason == action.Timeout {
			timeout = 100 * time.Millisecond
		}
		got := actiontest.Attempt(t, shell(timeout, script))
		if got.Reason != want.Reason || got.Success != want.Success ||
			want.Reason != "" && want.Reason != action.Timeout && (got.Output != want.Output || got.ExitCode != want.ExitCode) {
			t.Errorf("%q: got %+v, want %+v", script, got, want)
		}
	}
}

// A command that had ended by its deadline has not timed out, even if the agent looked later.
// After the agent has reaped the command, it never signals its number again.
func TestExecEndedBeforeKill(t *testing.T) {
	child, err := startChild("/bin/true", []string{"true"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	testutil.Until(t, "the command has ended", func() bool { return state(child.pid) == 'Z' })
	if killChild(child) {
		t.Error("killed a command that had ended")
	}
	if end, err := waitChild(child); err != nil || !end.Success() {
		t.Errorf("got %v, error %v; want exit status 0", end, err)
	}
	if killChild(child) {
		t.Error("killed a command that had been reaped")
	}
	if len(children.own) != 0 {
		t.Errorf("%d entries are left in own", len(children.own))
	}
}

// If the kernel has no descriptor of a command, the agent still sees the end of the command and
// keeps the deadline.
func TestExecWithoutHandle(t *testing.T) {
	for script, ends := range map[string]bool{"exit 0": true, "sleep 0.1": true, "sleep 60 & exit 0": true, "sleep 60": false} {
		c, r, err := startPiped("/bin/sh", []string{"sh", "-c", script}, os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		timeout := 10 * time.Second
		if !ends {
			timeout = 100 * time.Millisecond
		}
		began := time.Now()
		over := c.watch(dial.NewStopwatch(timeout))
		if took := time.Since(began); over != ends || !ends && took < timeout || took > timeout+5*time.Second {
			t.Errorf("%q: ended %v after %v, want %v", script, over, took, ends)
		}
		if killed := killChild(c); killed == ends {
			t.Errorf("%q: killed %v, want %v", script, killed, !ends)
		}
		if end, err := waitChild(c); err != nil || end.Success() != ends {
			t.Errorf("%q: %v, error %v", script, end, err)
		}
		r.Close()
	}
}

// The agent sees the output and the end in whatever order and however late they come: with the
// output left open for others, closed early, or written late.
func TestExecEndAndOutput(t *testing.T) {
	const late = "sleep 0.05; "
	for script, want := range map[string]action.Outcome{
		"exec >&- 2>&-; exit 3":                        {Reason: action.ExitCode, ExitCode: 3},
		"exec >&- 2>&-; " + late + "exit 3":            {Reason: action.ExitCode, ExitCode: 3},
		"echo well; exec >&- 2>&-; " + late + "exit 0": {Success: true, Output: "well\n"},
		"sleep 60 & echo well":                         {Success: true, Output: "well\n"},
		"sleep 60 & " + late + "echo well; exit 3":     {Reason: action.ExitCode, Output: "well\n", ExitCode: 3},
		"echo still; " + late + "echo well":            {Success: true, Output: "still\nwell\n"},
	} {
		began := time.Now()
		if got := actiontest.Attempt(t, shell(30*time.Second, script)); got != want {
			t.Errorf("%q: got %+v, want %+v", script, got, want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q: took %v", script, took)
		}
	}
}

// 200 attempts of every sort leave no descriptor, goroutine, entry or child behind.
func TestExecLeavesNothing(t *testing.T) {
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	sorts := []action.Func{
		shell(10*time.Second, "exit 0"),
		shell(10*time.Second, "echo unwell; exit 1"),
		shell(10*time.Second, "sleep 60 & exit 0"),
		shell(2*time.Millisecond, "sleep 60"),
		commandExec(&config.Target{}, time.Second, "/no/such/command"),
	}
	round := func() {
		for _, f := range sorts {
			_, _ = f(t.Context())
		}
	}
	round() // opens the runtime's poller, which stays open
	files, goroutines := count("/proc/self/fd"), runtime.NumGoroutine()
	for range 200 / len(sorts) {
		round()
	}
	if got := count("/proc/self/fd"); got > files {
		t.Errorf("%d descriptors, %d before", got, files)
	}
	testutil.Until(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if len(children.own) != 0 {
		t.Errorf("%d entries are left in own", len(children.own))
	}
	if !noChildren() {
		t.Error("children or zombies are left")
	}
}

// Each of 50 attempts at once gets its own exit status and output.
func TestExecAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			got, err := actiontest.Tried(t, shell(30*time.Second, fmt.Sprintf("echo %d; exit %d", i, i)))
			if err != nil || got.Output != fmt.Sprintln(i) || got.Success != (i == 0) {
				t.Errorf("%d: got %+v, error %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

// Without descriptors an attempt is an error, nobody's failure, and leaks no descriptor.
func TestExecOutOfDescriptors(t *testing.T) {
	got := actiontest.Attempt(t, helperExec(t, 20*time.Second, "scarce"))
	if !got.Success {
		t.Errorf("got %+v", got)
	}
}

func BenchmarkExec(b *testing.B) {
	f := commandExec(&config.Target{}, 10*time.Second, "/bin/true")
	b.ReportAllocs()
	for b.Loop() {
		if got := actiontest.Attempt(b, f); !got.Success {
			b.Fatalf("got %+v", got)
		}
	}
}

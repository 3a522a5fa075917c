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

// At the timeout the whole group dies, also those of it that ignore SIGTERM.
func TestExecTimeoutKillsGroup(t *testing.T) {
	pids := timedOut(t, "family", "stay")
	testutil.Until(t, "all three children are dead", func() bool { return len(pids) == 3 && dead(pids) })
}

// What a command leaves behind in its group dies with its exit: nothing piles up, or
// runs into the next turn. Its exit status counts, and it costs no time.
func TestExecKillsLeftovers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	begin := time.Now()
	if got := actiontest.Attempt(t, helperExec(t, 30*time.Second, "family", file, "exit")); !got.Success {
		t.Fatalf("got %+v, want success", got)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v: waited for what was left behind", took)
	}
	pids := recorded(t, file)
	testutil.Until(t, "all three children are dead", func() bool { return dead(pids) })
}

// A process that has left the group, and is out of reach, may hold the output open
// or go on writing: the attempt ends all the same, with what the command wrote.
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
		if helper == "escape" && dead(pids) { // chatter dies of the closed pipe
			t.Error("it has not escaped: the test shows nothing")
		}
		unix.Kill(pids[0], unix.SIGKILL)
	}
}

// What a command wrote is not lost to an agent that is late to read it, though the
// pipe is still held open.
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

// Nor does an escaped process stall an attempt at its timeout.
func TestExecEscapedProcessDoesNotStallTimeout(t *testing.T) {
	begin := time.Now()
	pids := timedOut(t, "escape", "stay")
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if dead(pids) {
		t.Error("it has not escaped: the test shows nothing")
	}
	unix.Kill(pids[0], unix.SIGKILL)
}

// A command that has moved to the agent's own group is killed, and the agent is not.
func TestExecTimeoutKillsRegroupedCommand(t *testing.T) {
	if pids := timedOut(t, "regroup"); !dead(pids) {
		t.Errorf("%v still runs", pids)
	}
}

// A command that a signal ends is a failure with reason signal, even if that is
// SIGKILL (the OOM killer's): only our own kill is a timeout.
func TestExecSignal(t *testing.T) {
	for script, want := range map[string]action.Outcome{
		"kill -KILL $$":             {Reason: action.Signal, Output: "signal: killed", ExitCode: 128 + 9},
		"kill -TERM $$":             {Reason: action.Signal, Output: "signal: terminated", ExitCode: 128 + 15},
		"echo dying; kill -USR1 $$": {Reason: action.Signal, Output: "dying\n", ExitCode: 128 + 10}, // nohup leaves it alone
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

// A command that had ended by its deadline has not timed out, even if nobody looked
// until later; and once it has been reaped its number is never signalled again.
func TestExecEndedBeforeKill(t *testing.T) {
	child, err := startChild("/bin/true", []string{"true"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	testutil.Until(t, "the command has ended", func() bool { return state(child.pid) == 'Z' })
	if killChild(child) {
		t.Error("killed what had ended")
	}
	if end, err := waitChild(child); err != nil || !end.Success() {
		t.Errorf("got %v, error %v; want exit status 0", end, err)
	}
	if killChild(child) {
		t.Error("killed what had been reaped")
	}
	if len(children.own) != 0 {
		t.Errorf("%d entries are left in own", len(children.own))
	}
}

// Where the kernel has no descriptor of a command its end is seen all the same, and a
// deadline is kept.
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

// Output and end are both seen, in whatever order and however long after the start they
// come: what is left to others, what is closed early, what comes late.
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
	round() // opens what the runtime keeps: its poller
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
		t.Error("there are children left, or zombies")
	}
}

// 50 attempts at once each get their own exit status and output.
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

// Without descriptors an attempt is an error, nobody's failure, and it leaks none.
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

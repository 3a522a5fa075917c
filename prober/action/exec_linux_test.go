// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package action

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
)

var systemHelpers = map[string]func(args []string){
	// family starts children that ignore SIGTERM, writes their pids to a file, and
	// then exits or, with "stay", ignores SIGTERM as well.
	"family": func(args []string) {
		var pids []string
		for range 3 {
			child := spawn(nil, "/bin/sh", "-c", "trap '' TERM; echo ready; sleep 60; sleep 60")
			pids = append(pids, strconv.Itoa(child))
		}
		record(args[0], strings.Join(pids, " "))
		if args[1] == "stay" {
			time.Sleep(time.Minute)
		}
	},
	// escape leaves a process in a session of its own that holds the output open.
	"escape": func(args []string) {
		fmt.Print("bye")
		record(args[0], strconv.Itoa(spawn(&syscall.SysProcAttr{Setsid: true}, "/bin/sleep", "60")))
		if args[1] == "stay" {
			time.Sleep(time.Minute)
		}
	},
	// chatter is escape with a process that never stops writing.
	"chatter": func(args []string) {
		record(args[0], strconv.Itoa(spawn(&syscall.SysProcAttr{Setsid: true}, "/bin/sh", "-c", "while :; do echo chatter; done")))
	},
	// regroup moves into the agent's group, where no kill of its own finds it.
	"regroup": func(args []string) {
		group, err := unix.Getpgid(os.Getppid())
		if err == nil {
			err = unix.Setpgid(0, group)
		}
		if err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		record(args[0], strconv.Itoa(os.Getpid()))
		time.Sleep(time.Minute)
	},
	"scarce": scarce,
	"init":   beInit,
	// orphan leaves a process that lives a little longer, and exits with a status.
	"orphan": func(args []string) {
		spawn(&syscall.SysProcAttr{Setsid: true}, "/bin/sh", "-c", "sleep 0.05 & sleep 0.02")
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	},
}

// spawn starts a process with our output and returns its pid.
func spawn(attr *syscall.SysProcAttr, command ...string) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.SysProcAttr = os.Stdout, attr
	if err := cmd.Start(); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	return cmd.Process.Pid
}

// record writes a file whole, so that who reads it never sees a part.
func record(file, text string) {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		panic(err)
	}
}

// recorded returns the pids that a helper wrote, and sees to it that none outlives
// the test.
func recorded(t *testing.T, file string) []int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the command did not get so far: %v", err)
	}
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 1 {
			t.Fatalf("%q is no pid", field)
		}
		pids = append(pids, pid)
	}
	return pids
}

// state returns the state letter of a process, 0 if there is none.
func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return stat[strings.LastIndexByte(string(stat), ')')+2]
}

// dead reports whether none of the processes runs. Those that were orphaned may stay
// zombies: they are another's to reap.
func dead(pids []int) bool {
	for _, pid := range pids {
		if s := state(pid); s != 0 && s != 'Z' && s != 'X' {
			return false
		}
	}
	return true
}

// noChildren reports whether this process has no child, not even a zombie.
func noChildren() bool {
	_, err := exited(unix.P_ALL, 0, unix.WNOHANG)
	return err == unix.ECHILD
}

func shell(timeout time.Duration, script string) Func {
	return commandExec(&config.Target{}, timeout, "/bin/sh", "-c", script)
}

// At the timeout the whole group dies, also those of it that ignore SIGTERM.
func TestExecTimeoutKillsGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	if got := attempt(t, helperExec(t, time.Second, "family", file, "stay")); got.Reason != Timeout {
		t.Fatalf("got %+v, want a timeout", got)
	}
	pids := recorded(t, file)
	eventually(t, "all three children are dead", func() bool { return dead(pids) })
}

// What a command leaves behind in its group dies with its exit: nothing piles up, or
// runs into the next turn. Its exit status counts, and it costs no time.
func TestExecKillsLeftovers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	begin := time.Now()
	if got := attempt(t, helperExec(t, 30*time.Second, "family", file, "exit")); !got.Success {
		t.Fatalf("got %+v, want success", got)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v: waited for what was left behind", took)
	}
	pids := recorded(t, file)
	eventually(t, "all three children are dead", func() bool { return dead(pids) })
}

// A process that has left the group, and is out of reach, may hold the output open
// or go on writing: the attempt ends all the same, with what the command wrote.
func TestExecEscapedProcessDoesNotStall(t *testing.T) {
	for _, c := range []struct {
		helper, then string
		timeout      time.Duration
		want         Reason
		output       string
	}{
		{"escape", "exit", 30 * time.Second, "", "bye"},
		{"escape", "stay", time.Second, Timeout, "command "},
		{"chatter", "exit", 30 * time.Second, "", ""},
	} {
		file := filepath.Join(t.TempDir(), "pids")
		begin := time.Now()
		got := attempt(t, helperExec(t, c.timeout, c.helper, file, c.then))
		took := time.Since(begin)
		for _, pid := range recorded(t, file) {
			if c.helper == "escape" && dead([]int{pid}) { // chatter dies of the closed pipe
				t.Errorf("%s, %s: %d has not escaped: the test shows nothing", c.helper, c.then, pid)
			}
			unix.Kill(pid, unix.SIGKILL)
		}
		if got.Reason != c.want || got.Success != (c.want == "") || !strings.HasPrefix(got.Output, c.output) {
			t.Errorf("%s, %s: got %+v, want reason %q and output %q", c.helper, c.then, got, c.want, c.output)
		}
		if took > 10*time.Second {
			t.Errorf("%s, %s: took %v", c.helper, c.then, took)
		}
	}
}

// A command that has moved to the agent's own group is killed, and the agent is not.
func TestExecTimeoutKillsRegroupedCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	if got := attempt(t, helperExec(t, time.Second, "regroup", file)); got.Reason != Timeout {
		t.Fatalf("got %+v, want a timeout", got)
	}
	if pids := recorded(t, file); !dead(pids) {
		t.Errorf("%v still runs", pids)
	}
}

// A command that a signal ends is a failure with reason signal, even if that is
// SIGKILL (the OOM killer's): only our own kill is a timeout.
func TestExecSignal(t *testing.T) {
	for script, want := range map[string]Outcome{
		"kill -KILL $$":             {Reason: Signal, Output: "signal: killed"},
		"kill -TERM $$":             {Reason: Signal, Output: "signal: terminated"},
		"echo dying; kill -HUP $$":  {Reason: Signal, Output: "dying\n"},
		"sh -c 'kill -KILL $$'; :":  {Success: true, Output: "Killed\n"},
		"kill -STOP $$; echo never": {Reason: Timeout},
	} {
		got := attempt(t, shell(time.Second, script))
		if got.Reason != want.Reason || got.Success != want.Success ||
			want.Reason != "" && want.Reason != Timeout && got.Output != want.Output {
			t.Errorf("%q: got %+v, want %+v", script, got, want)
		}
	}
}

// A command that had ended by its deadline has not timed out, even if nobody looked
// until later; and once it has been reaped its number is never signalled again.
func TestExecEndedBeforeKill(t *testing.T) {
	child, err := startChild("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command has ended", func() bool { return state(child.Pid) == 'Z' })
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

// 200 attempts of every sort leave no descriptor, goroutine, entry or child behind.
func TestExecLeavesNothing(t *testing.T) {
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	sorts := []Func{
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
	eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
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
			got, err := shell(30*time.Second, fmt.Sprintf("echo %d; exit %d", i, i))(t.Context())
			if err != nil || got.Output != fmt.Sprintln(i) || got.Success != (i == 0) {
				t.Errorf("%d: got %+v, error %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

// Without descriptors an attempt is an error, nobody's failure, and it leaks none.
func TestExecOutOfDescriptors(t *testing.T) {
	got := attempt(t, helperExec(t, 20*time.Second, "scarce"))
	if !got.Success {
		t.Errorf("got %+v", got)
	}
}

// scarce takes all descriptors but n, for each small n, and makes an attempt.
func scarce([]string) {
	limit := unix.Rlimit{Cur: 40, Max: 40}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	os.Unsetenv(helperEnv)
	f := commandExec(&config.Target{}, 10*time.Second, "/bin/sh", "-c", "exit 3")
	if got, err := f(bareContext()); got.Reason != ExitCode || err != nil {
		panic(fmt.Sprint(got, err))
	}
	var taken []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	made, refused := 0, 0
	for n := range 12 {
		if n > 0 {
			unix.Close(taken[len(taken)-n])
		}
		for range 3 { // a leak of one attempt starves the next
			switch got, err := f(bareContext()); {
			case err != nil && got.Reason == ExecStart:
				refused++
			case err == nil && got.Reason == ExitCode:
				made++
			default:
				panic(fmt.Sprintf("with %d descriptors: %+v, error %v", n, got, err))
			}
		}
	}
	fmt.Println(made, refused)
	if made < 9 || refused < 9 || made%3 != 0 || refused%3 != 0 {
		os.Exit(1)
	}
}

func BenchmarkExec(b *testing.B) {
	f := commandExec(&config.Target{}, 10*time.Second, "/bin/true")
	b.ReportAllocs()
	for b.Loop() {
		if got := attempt(b, f); !got.Success {
			b.Fatalf("got %+v", got)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

var systemHelpers = map[string]func(args []string){
	// family starts children that ignore SIGTERM and writes their pids to a file. Then
	// family exits or, with "stay", ignores SIGTERM as well.
	"family": func(args []string) {
		var pids []string
		for range 3 {
			child := spawn(nil, "/bin/sh", "-c", "trap '' TERM; echo ready; sleep 60; sleep 60")
			pids = append(pids, strconv.Itoa(child))
		}
		record(args[0], strings.Join(pids, " "))
		if args[1] == "stay" {
			linger()
		}
	},
	// escape leaves a process in a session of its own that holds the output open.
	"escape": func(args []string) {
		fmt.Print("bye")
		record(args[0], strconv.Itoa(spawn(&syscall.SysProcAttr{Setsid: true}, "/bin/sleep", "60")))
		if args[1] == "stay" {
			linger()
		}
	},
	// chatter is like escape, but the process never stops writing.
	"chatter": func(args []string) {
		record(args[0], strconv.Itoa(spawn(&syscall.SysProcAttr{Setsid: true}, "/bin/sh", "-c", "while :; do echo chatter; done")))
	},
	// regroup moves into the agent's group, where the kill of the command's group does not
	// reach it.
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
		linger()
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

// spawn starts a process with the helper's output and returns its pid.
func spawn(attr *syscall.SysProcAttr, command ...string) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.SysProcAttr = os.Stdout, attr
	if err := cmd.Start(); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	return cmd.Process.Pid
}

// record writes a file in one step, so that no reader sees a part of the file.
func record(file, text string) {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		panic(err)
	}
}

// recorded returns the pids that a helper wrote.
func recorded(t *testing.T, file string) []int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the command has not written its pids: %v", err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 1 {
			t.Fatalf("%q is no pid", field)
		}
		pids = append(pids, pid)
	}
	return pids
}

// timedOut runs a helper into its timeout and returns the pids that the helper wrote before. If
// a busy machine does not get so far, the helper gets more time.
func timedOut(t *testing.T, helper string, args ...string) []int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pids")
	for timeout := 200 * time.Millisecond; ; timeout *= 2 {
		got := actiontest.Attempt(t, helperExec(t, timeout, helper, append([]string{file}, args...)...))
		if got.Reason != action.Timeout || got.Success {
			t.Fatalf("got %+v, want a timeout", got)
		}
		if _, err := os.Stat(file); err == nil || timeout > 5*time.Second {
			return recorded(t, file)
		}
	}
}

// state returns the state letter of a process, or 0 if there is none.
func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return stat[strings.LastIndexByte(string(stat), ')')+2]
}

// dead reports whether none of the processes runs. Orphans may stay zombies: another process
// reaps them.
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
	return errors.Is(err, unix.ECHILD)
}

// shell returns an exec action that runs a script. Each $ of the script is for the shell.
func shell(timeout time.Duration, script string) action.Func {
	return commandExec(&config.Target{}, timeout, "/bin/sh", "-c", strings.ReplaceAll(script, "$", "$$"))
}

// scarce makes an attempt with only n free descriptors, for each small n.
func scarce([]string) {
	limit := unix.Rlimit{Cur: 40, Max: 40}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	os.Unsetenv(actiontest.HelperEnv)
	f := commandExec(&config.Target{}, 10*time.Second, "/bin/sh", "-c", "exit 3")
	if got, err := f(bareContext()); got.Reason != action.ExitCode || err != nil {
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
			case err != nil && got.Reason == action.ExecStart:
				refused++
			case err == nil && got.Reason == action.ExitCode:
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

func contextDone(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

func contextDeadline(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// A pid file has a number in its first line, perhaps between blanks. An empty file means that
// there is no process yet, and anything else is an error. The source reads at most 128 bytes of
// 5 GB, and does not wait for the other end of a pipe.
func TestReadPIDFile(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]int{
		"1\n": 1, "1234": 1234, " 77 \t\r\n": 77, "42\n/var/lib/db\n5432\n": 42, "2147483647\n": 2147483647,
		"": 0, "\n \n": 0,
		"-1\n": -1, "0\n": -1, "2147483648": -1, "99999999999999999999": -1, "12 34\n": -1, "pid\n": -1, "0x10": -1,
		strings.Repeat(" ", 200): -1,
		"\x00\x00":               -1,
	} {
		got, _, err := readPIDFile(pidFile(t, filepath.Join(dir, "pid"), text))
		if want >= 0 && (got != want || err != nil) || want < 0 && (err == nil || got != 0) {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	if got, _, err := readPIDFile(filepath.Join(dir, "none")); got != 0 || err != nil {
		t.Errorf("got %d, %v without a file", got, err)
	}
	big := pidFile(t, filepath.Join(dir, "big"), "")
	if err := os.Truncate(big, 5<<30); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{big, pipe, dir, "/dev/zero"} {
		begin := time.Now()
		if got, _, err := readPIDFile(path); got != 0 || err == nil {
			t.Errorf("%s: got %d, %v, want an error", path, got, err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s: reading took %v", path, took)
		}
	}
}

// While a process runs, its pid file says nothing about it. The instance stays if the file is
// gone, empty, garbage, or has the number of a process that does not run.
func TestProcessPIDFileWhileRunning(t *testing.T) {
	pid := testutil.Orphan(t, "sleep "+testutil.Unique())
	gone := testutil.Orphan(t, "sleep "+testutil.Unique())
	testutil.Kill(t, gone)
	path := pidFile(t, "", strconv.Itoa(pid))
	p, log := watching(t)
	p.Watch(byFile("app", path))
	want := p.Instance("app")
	for _, tc := range []struct {
		text string
		up   bool
	}{{"", true}, {"nonsense", false}, {strconv.Itoa(gone), true}, {strconv.Itoa(os.Getpid()), false}, {strconv.Itoa(tidOther(t)), true}, {"-4", false}} {
		pidFile(t, path, tc.text)
		for range 2 {
			p.Look(t.Context())
			if got := p.Instance("app"); got != want || p.Up() != tc.up || (p.Describe("app").Message == "") != tc.up {
				t.Errorf("%q: got %+v, up %v, %+v", tc.text, got, p.Up(), p.Describe("app"))
			}
		}
	}
	if warned, well := log.count("level=WARN"), log.count("level=INFO"); warned != 3 || well != 2 {
		t.Errorf("%d warnings and %d of their ends, want 3 and 2:\n%s", warned, well, log.String())
	}
	os.Remove(path)
	p.Look(t.Context())
	if got := p.Instance("app"); got != want || !p.Up() {
		t.Errorf("without a file: got %+v, up %v", got, p.Up())
	}
	testutil.Kill(t, pid)
	p.Look(t.Context())
	if got := p.Instance("app"); got.Phase != gate.Terminated || got.ID != want.ID {
		t.Errorf("got %+v", got)
	}
	pidFile(t, path, "nonsense")
	p.Look(t.Context())
	p.Forget("app")
	if !p.Up() {
		t.Error("the trouble of a target outlives the target")
	}
}

// If a pid file is older than its process by more than 2 s, its number was another process'.
// The source does not take the process until somebody touches the file, and one warning says
// so.
func TestProcessPIDFileStale(t *testing.T) {
	if inMemory(t, t.TempDir()) {
		t.Setenv("TMPDIR", "/var/tmp")
	}
	pid := testutil.Orphan(t, "sleep "+testutil.Unique())
	path := pidFile(t, "", strconv.Itoa(pid))
	old := time.Now().Add(-time.Minute)
	os.Chtimes(path, old, old)
	p, log := watching(t)
	p.Watch(byFile("app", path))
	p.Look(t.Context())
	p.Look(t.Context())
	if got := p.Instance("app"); got != (gate.Instance{}) || !p.Up() || log.count("touch the file") != 1 ||
		!strings.Contains(p.Describe("app").Message, "older than the process") {
		t.Errorf("got %+v, %+v, up %v, log:\n%s", got, p.Describe("app"), p.Up(), log.String())
	}
	now := time.Now()
	os.Chtimes(path, now, now)
	p.Look(t.Context())
	if got := p.Instance("app"); got.Phase != gate.Running || p.Describe("app").Message != "" {
		t.Errorf("got %+v, %+v after a touch", got, p.Describe("app"))
	}
	os.Chtimes(path, old, old)
	p.Look(t.Context())
	if got := p.Instance("app"); got.Phase != gate.Running {
		t.Errorf("got %+v for a leader from before", got)
	}
}

func inMemory(t *testing.T, path string) bool {
	t.Helper()
	_, when, err := readPIDFile(pidFile(t, filepath.Join(path, "where"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	return when.inMemory
}

// A file may seem older than the boot although its file system does not survive a boot. Then
// the clock is wrong, and the process did not come after the file.
func TestWrittenBefore(t *testing.T) {
	pid := testutil.Orphan(t, "sleep "+testutil.Unique())
	procs := proc.FS{Root: "/proc"}
	is, err := procs.Stat(pid)
	if err != nil {
		t.Fatal(err)
	}
	boot := time.Now().Add(-proc.Age(proc.Process{}))
	for _, tc := range []struct {
		written
		want bool
	}{
		{written{at: boot.Add(-time.Minute)}, true},
		{written{at: boot.Add(-time.Minute), inMemory: true}, false},
		{written{at: time.Now(), inMemory: true}, false},
	} {
		if got := tc.before(is.Process); got != tc.want {
			t.Errorf("%+v: got %v", tc.written, got)
		}
	}
}

// A zombie has ended, although its number and its pid file are still there. A process whose
// first thread has ended runs until its last thread has ended.
func TestProcessZombie(t *testing.T) {
	cmd := exec.Command("sleep", testutil.Unique())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	path := pidFile(t, "", strconv.Itoa(cmd.Process.Pid))
	p, _ := watching(t)
	p.Watch(byFile("app", path))
	told, _ := run(t, p)
	if name := <-told; p.Instance(name).Phase != gate.Running {
		t.Fatalf("got %+v", p.Instance(name))
	}
	testutil.Kill(t, cmd.Process.Pid)
	within(t, p, "app", gate.Terminated)
	p.Watch(byFile("late", path))
	if got := p.Instance("late"); got != (gate.Instance{}) {
		t.Errorf("a zombie is %+v", got)
	}
	cmd.Wait()

	threads := exec.Command(os.Args[0], "-test.run=^TestProcessHelper$")
	threads.Env = append(os.Environ(), processHelperEnv+"=headless")
	if err := threads.Start(); err != nil {
		t.Fatal(err)
	}
	defer threads.Wait()
	defer threads.Process.Kill()
	testutil.Until(t, "the first thread has ended", func() bool {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(threads.Process.Pid) + "/stat")
		return err == nil && strings.Contains(string(text), ") Z ")
	})
	p.Watch(byFile("headless", pidFile(t, "", strconv.Itoa(threads.Process.Pid))))
	for range 3 {
		p.Look(t.Context())
		if got := p.Instance("headless"); got.Phase != gate.Running {
			t.Errorf("got %+v", got)
		}
	}
	threads.Process.Kill()
	within(t, p, "headless", gate.Terminated)
}

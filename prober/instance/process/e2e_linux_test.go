// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// TestProcessHelper is no test. Other tests run it in a process of its own.
func TestProcessHelper(t *testing.T) {
	helper := map[string]func(*testing.T){
		"":          func(*testing.T) {},
		"headless":  headless,
		"reuse":     reuse,
		"denied":    denied,
		"hidden":    hidden,
		"filtered":  filtered,
		"elsewhere": elsewhere,
		"scarce":    scarce,
	}[os.Getenv(processHelperEnv)]
	os.Unsetenv(processHelperEnv)
	helper(t)
}

// headless ends the first thread of this process, while the others go on.
func headless(*testing.T) {
	for range 100 {
		go func() {
			runtime.LockOSThread()
			endFirst()
			unix.Nanosleep(&unix.Timespec{Sec: 60}, nil)
		}()
	}
	endFirst()
	unix.Nanosleep(&unix.Timespec{Sec: 60}, nil)
}

func endFirst() {
	if unix.Gettid() == os.Getpid() {
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// The kernel gives a process' number to another process, in a namespace of 400 numbers, after
// the target has ended. The source does not take that stranger for the target, whether the pid
// file stays or a real successor writes it anew.
func TestProcessReuse(t *testing.T) {
	needs.Root(t)
	before, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		t.Fatal(err)
	}
	out := processHelper(t, "reuse", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
	after, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil || string(after) != string(before) {
		t.Fatalf("the machine's pid_max was %s and is %s, %v", before, after, err)
	}
	if strings.Contains(out, "not namespaced") {
		t.Skip("this kernel has one pid_max for all namespaces") //nolint:forbidigo // before Linux 6.14: not to be had by any right
	}
	if !strings.Contains(out, "number 150 given again: true") {
		t.Errorf("got:\n%s", out)
	}
}

// reuse runs as the first process of the namespace.
func reuse(t *testing.T) {
	var uname unix.Utsname
	unix.Uname(&uname)
	var major, minor int
	fmt.Sscanf(unix.ByteSliceToString(uname.Release[:]), "%d.%d", &major, &minor)
	if major < 6 || major == 6 && minor < 14 {
		fmt.Println("not namespaced")
		return
	}
	if err := os.WriteFile("/proc/sys/kernel/pid_max", []byte("400"), 0); err != nil {
		t.Fatal(err)
	}
	// start makes the kernel give the next process the given number.
	start := func(number int) *exec.Cmd {
		t.Helper()
		for range 1000 {
			if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(number-1)), 0); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sleep", "60")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if cmd.Process.Pid == number {
				return cmd
			}
			cmd.Process.Kill()
			cmd.Wait()
		}
		t.Fatalf("no process ever gets number %d", number)
		return nil
	}
	first := start(150)
	path := pidFile(t, "", "150")
	p, _ := watching(t)
	p.Watch(byFile("app", path))
	run(t, p)
	was := within(t, p, "app", gate.Running)
	first.Process.Kill()
	first.Wait()
	within(t, p, "app", gate.Terminated)
	// The pid file of a real target is older than a stranger by far more than the coarseness
	// of the file system's clock.
	old := time.Now().Add(-time.Minute)
	os.Chtimes(path, old, old)
	stranger := start(150)
	fmt.Println("number 150 given again:", stranger.Process.Pid == 150)
	for range 20 {
		p.Look(t.Context())
		if got := p.Instance("app"); got.Phase != gate.Terminated || got.ID != was.ID {
			t.Fatalf("the stranger is %+v, after %+v", got, was)
		}
	}
	stranger.Process.Kill()
	stranger.Wait()
	next := start(150)
	pidFile(t, path, "150\n")
	got := within(t, p, "app", gate.Running)
	if got.ID == was.ID || !strings.Contains(got.ID, "/150/") {
		t.Errorf("the successor is %+v, after %+v", got, was)
	}
	next.Process.Kill()
	next.Wait()
	within(t, p, "app", gate.Terminated)
}

// Without a free descriptor the source concludes nothing: three instances stay as they are, and
// the source sees no new ones. Both recover by themselves.
func TestProcessScarce(t *testing.T) {
	processHelper(t, "scarce")
}

func scarce(t *testing.T) {
	word := testutil.Unique()
	l := testutil.Listen(t, "tcp", ":0", false)
	port := testutil.PortOf(t, l)
	f := testutil.SocketOf(t, l)
	pid := testutil.Orphan(t, "sleep "+word, f)
	f.Close()
	path := pidFile(t, "", strconv.Itoa(pid))
	p, _ := watching(t)
	watch := func(suffix string) {
		p.Watch(byFile("file"+suffix, path))
		p.Watch(byPort("port"+suffix, port))
		p.Watch(byMatch("match"+suffix, "^sleep "+word+"$"))
	}
	watch("")
	lookUntil(t, p, "all are seen", func() bool {
		return p.Describe("file").PID == pid && p.Describe("port").PID == pid && p.Describe("match").PID == pid
	})
	want := p.Instance("port")
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	p.eyes.scan = nil
	watch(" late")
	for range 3 {
		p.eyes.scanNext, p.eyes.socketsNext = time.Time{}, time.Time{}
		p.Look(t.Context())
	}
	up, now, message := p.Up(), p.Instance("port"), p.Describe("match late").Message
	late := []gate.Instance{p.Instance("file late"), p.Instance("port late"), p.Instance("match late")}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if up || now != want || !strings.Contains(message, "too many open files") {
		t.Errorf("up %v, %+v, %q", up, now, message)
	}
	for _, got := range late {
		if got != (gate.Instance{}) {
			t.Errorf("got %+v", got)
		}
	}
	lookUntil(t, p, "all is well", func() bool {
		return p.Up() && p.Describe("file late").PID == pid && p.Describe("port late").PID == pid && p.Describe("match late").PID == pid
	})
	if got := p.Instance("port"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// processHelperEnv makes TestProcessHelper act: its value names what it is.
const processHelperEnv = "PROBER_EXPORTER_PROCESS_HELPER"

// processHelper runs one of the helpers in another process, the way prefix says, and
// returns what it printed.
func processHelper(t *testing.T, name string, prefix ...string) string {
	t.Helper()
	command := slices.Concat(prefix, []string{os.Args[0], "-test.run=^TestProcessHelper$", "-test.timeout=50s", "-test.v"})
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), processHelperEnv+"="+name)
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("--- SKIP")) {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// lines is a log that can be looked into.
type lines struct {
	flush func() // of a source that nobody runs
	mu    sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count is how many lines have this in them.
func (l *lines) count(text string) int {
	l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// watching returns a source that nobody runs yet, with its log.
func watching(t testing.TB) (*Process, *lines) {
	log := new(lines)
	p := NewProcess(slog.New(slog.NewTextHandler(log, nil)))
	log.flush = p.notes.write
	t.Cleanup(func() { p.eyes.sockets.close() })
	return p, log
}

// run runs a source until the end of the test or stop, which waits for it. It returns
// the names that it tells of; who takes none of them does not hold it up.
func run(t testing.TB, p *Process) (told chan string, stop func()) {
	told = make(chan string, 10000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, func(target string) { told <- target }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return told, stop
}

func byFile(name, path string) *config.Target {
	return &config.Target{Name: name, Instance: config.Instance{Source: config.SourceProcess, PIDFile: path}}
}

func byPort(name string, port uint16) *config.Target {
	return &config.Target{Name: name, Instance: config.Instance{Source: config.SourceProcess, Port: config.PortRef{Number: int(port)}}}
}

func byMatch(name, pattern string) *config.Target {
	return &config.Target{Name: name, Instance: config.Instance{Source: config.SourceProcess, Match: pattern}}
}

// eventually waits until something is so, and says how long that took.
func eventually(t testing.TB, what string, so func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("not within 20 s: %s", what)
		}
		<-tick.C
	}
	return time.Since(begin)
}

// within waits until a target has a phase.
func within(t testing.TB, p *Process, target string, phase gate.Phase) gate.Instance {
	t.Helper()
	var got gate.Instance
	eventually(t, target+" is "+phase.String(), func() bool { got = p.Instance(target); return got.Phase == phase })
	return got
}

// unique is a number of seconds that nobody else sleeps for.
func unique() string {
	return "86400." + strconv.FormatInt(time.Now().UnixNano(), 10)
}

// orphan starts a shell command in the background whose parent is not the test, with
// files from descriptor 3 on, and returns its number. The test's end kills it.
func orphan(t testing.TB, command string, files ...*os.File) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "(exec 9>&-; exec "+command+") & echo $! >&9")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.ExtraFiles = make([]*os.File, 7)
	copy(cmd.ExtraFiles, files)
	cmd.ExtraFiles[6] = in
	err = cmd.Run()
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	var buf [20]byte
	n, _ := out.Read(buf[:])
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	procs := procs{root: "/proc"}
	eventually(t, command+" has begun", func() bool {
		line, err := procs.command(pid)
		return err != nil || !strings.Contains(line, "echo $!")
	})
	return pid
}

// end kills a process and waits until it does not run.
func end(t testing.TB, pid int) {
	t.Helper()
	syscall.Kill(pid, syscall.SIGKILL)
	procs := procs{root: "/proc"}
	eventually(t, "it has ended", func() bool {
		is, err := procs.stat(pid)
		return err != nil || is.ended
	})
}

// pidFile writes a pid file whole.
func pidFile(t testing.TB, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "pid")
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// socketOf returns a listener's socket as a file for another process, and closes ours.
func socketOf(t testing.TB, l net.Listener) *os.File {
	t.Helper()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return f
}

// owner starts a process that listens at a port of all addresses; at 0 it is nobody else's.
func owner(t testing.TB, at uint16) (pid int, port uint16) {
	t.Helper()
	where := strconv.Itoa(int(at))
	if at == 0 {
		where = testutil.Port(t)
	}
	l := listen(t, "tcp", ":"+where, true)
	port = addrOf(l).Port()
	f := socketOf(t, l)
	defer f.Close()
	return orphan(t, "sleep "+unique(), f), port
}

// tidOther is a thread of ours that is not the process.
func tidOther(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, _ := strconv.Atoi(task.Name()); tid != os.Getpid() {
			return tid
		}
	}
	t.Fatal("this process has one thread")
	return 0
}

// open counts our open descriptors.
func open(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// refuse makes the kernel answer some system calls with EPERM for the rest of this
// process: pidfd_open, and sockets of one family.
func refuse(family uint32) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the call's number
		{Code: equal, K: unix.SYS_PIDFD_OPEN, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKET, Jf: 3},
		{Code: load, K: 16}, // its first argument
		{Code: equal, K: family, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

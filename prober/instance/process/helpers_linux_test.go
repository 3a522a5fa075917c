// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// processHelperEnv makes TestProcessHelper act. Its value names a helper.
const processHelperEnv = "PROBER_EXPORTER_PROCESS_HELPER"

// processHelper runs a helper in another process, after the command prefix, and returns its
// output.
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

// lines is the log of a source that nobody runs.
type lines struct {
	testutil.Log
	flush func()
}

// count returns how many lines contain text.
func (l *lines) count(text string) int {
	l.flush()
	return l.Count(text)
}

// watching returns a source that does not run yet, and its log.
func watching(t testing.TB) (*Source, *lines) {
	log := new(lines)
	p := New(slog.New(slog.NewTextHandler(log, nil)))
	log.flush = p.notes.Write
	t.Cleanup(func() { p.eyes.sockets.Close() })
	return p, log
}

// run runs a source until the end of the test or the call of stop, which waits for the source.
// told gets the names of changed targets; a full channel does not hold the source up.
func run(t testing.TB, p *Source) (told chan string, stop func()) {
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

// within waits until a target has a phase.
func within(t testing.TB, p *Source, target string, phase gate.Phase) gate.Instance {
	t.Helper()
	var got gate.Instance
	testutil.Until(t, target+" is "+phase.String(), func() bool { got = p.Instance(target); return got.Phase == phase })
	return got
}

// pidFile writes a pid file in one step.
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

// owner starts a process that listens at a port of all addresses. If at is 0, the port is free.
func owner(t testing.TB, at uint16) (pid int, port uint16) {
	t.Helper()
	where := strconv.Itoa(int(at))
	if at == 0 {
		where = testutil.Port(t)
	}
	l := testutil.Listen(t, "tcp", ":"+where, true)
	port = testutil.PortOf(t, l)
	f := testutil.SocketOf(t, l)
	defer f.Close()
	return testutil.Orphan(t, "sleep "+testutil.Unique(), f), port
}

// inodesOn returns the inodes of the sockets that listen on a port.
func inodesOn(t *testing.T, port uint16) (inodes []uint64) {
	t.Helper()
	var s proc.Sockets
	defer s.Close()
	all, err := s.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Local.Port() == port {
			inodes = append(inodes, one.Inode)
		}
	}
	return inodes
}

// tidOther returns a thread of this process whose number is not the process'.
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

// refuse makes the kernel answer some system calls of this process with EPERM from now on:
// pidfd_open, and sockets of one family.
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
		{Code: load, K: 0}, // the number of the system call
		{Code: equal, K: unix.SYS_PIDFD_OPEN, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKET, Jf: 3},
		{Code: load, K: 16}, // the first argument
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

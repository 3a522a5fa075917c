// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Unique returns a number of seconds that no other process sleeps for, so no other process has
// the command line "sleep "+Unique().
func Unique() string {
	return "86400." + strconv.FormatInt(time.Now().UnixNano(), 10)
}

// Orphan starts a shell command in the background and returns its process number. The parent of
// the process is not the test. The process has files from descriptor 3 on. The end of the test
// kills the process.
func Orphan(t testing.TB, command string, files ...*os.File) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "(exec 9>&-; exec "+command+") & echo $! >&9")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd.ExtraFiles = make([]*os.File, 7)
	copy(cmd.ExtraFiles, files)
	cmd.ExtraFiles[6] = in
	if err := errors.Join(cmd.Run(), in.Close()); err != nil {
		t.Fatal(err)
	}
	var buf [20]byte
	n, err := out.Read(buf[:])
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // the process may have ended
	Until(t, command+" has begun", func() bool {
		// In the middle of its exec a process has no command line.
		line, _ := os.ReadFile(procPath(pid, "cmdline"))
		return len(line) > 0 && !bytes.Contains(line, []byte("echo $!")) || ended(pid)
	})
	return pid
}

// Kill kills a process and waits until it no longer runs. The process may remain as a zombie.
func Kill(t testing.TB, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended already
	Until(t, "the process has ended", func() bool { return ended(pid) })
}

// ended reports whether a process no longer runs. The process may remain as a zombie.
func ended(pid int) bool {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return true
	}
	// The name of the process stands in brackets and may contain brackets.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, threads = 0, 17
	return len(fields) > threads && strings.ContainsAny(string(fields[state]), "ZXx") && string(fields[threads]) <= "1"
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// Listen opens a listening socket for the rest of the test. With shared, others may
// listen on the same address.
func Listen(t testing.TB, network, address string, shared bool) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	if shared {
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}), err)
		}
	}
	l, err := lc.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the test may have closed it
	return l
}

// PortOf returns the port on which a listener listens.
func PortOf(t testing.TB, l net.Listener) uint16 {
	t.Helper()
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%T has no port", l)
	}
	return at.AddrPort().Port()
}

// SocketOf returns the socket of a listener as a file for another process. It closes the
// listener itself.
func SocketOf(t testing.TB, l net.Listener) *os.File {
	t.Helper()
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		t.Fatalf("%T is no TCP listener", l)
	}
	f, err := tcp.File()
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return f
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package actiontest

import (
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/needs"
)

// BlackHole returns an address that answers no SYN: a listener whose queue is full.
func BlackHole(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port))
	for range 8 {
		// Of a listener, the kernel says how many connections wait, and how many may.
		queue, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		if waiting, most := queue.Unacked, queue.Sacked; waiting > most {
			return address
		}
		conn, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	needs.Missing(t, "a listener whose queue fills")
	return ""
}

// Crowded listens on a Unix socket until nobody else can connect, and returns its path. Each call of
// accept makes room for one connection.
func Crowded(t *testing.T) (path string, accept func()) {
	t.Helper()
	path = Socket(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		conn, err := net.Dial("unix", path)
		if errors.Is(err, unix.EAGAIN) {
			return path, func() {
				if waiting, _, err := unix.Accept(fd); err != nil {
					t.Error(err)
				} else {
					t.Cleanup(func() { unix.Close(waiting) })
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	needs.Missing(t, "a Unix socket whose queue fills")
	return "", nil
}

// Descriptors returns how many files this process has open.
func Descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
)

// Port returns a port on which nobody listens, at any address. Until the test ends, the system
// gives the port to no program that asks for any free port. A program that asks for this very
// port may listen on it, also several times in turn.
func Port(t testing.TB) string {
	t.Helper()
	// A socket that is bound and does not listen keeps the port. Sockets of package net can
	// still bind to it, because they set SO_REUSEADDR, too. The socket is bound to all
	// addresses: otherwise another program that listens at ::1 could get the port, and nobody
	// could listen at all addresses.
	const kind = syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC
	var all syscall.Sockaddr = &syscall.SockaddrInet6{}
	fd, err := syscall.Socket(syscall.AF_INET6, kind, 0)
	if errors.Is(err, syscall.EAFNOSUPPORT) {
		all = &syscall.SockaddrInet4{}
		fd, err = syscall.Socket(syscall.AF_INET, kind, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Bind(fd, all)); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	switch at := bound.(type) {
	case *syscall.SockaddrInet6:
		return strconv.Itoa(at.Port)
	case *syscall.SockaddrInet4:
		return strconv.Itoa(at.Port)
	}
	t.Fatalf("bound to %v", bound)
	return ""
}

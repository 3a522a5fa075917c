// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
)

// Port returns a port of 127.0.0.1 on which nobody listens. Until the test ends, the
// system gives the port to nobody who asks for any free one; whoever asks for this very
// port may listen on it, and do so again.
func Port(t testing.TB) string {
	t.Helper()
	// A socket that is bound and does not listen keeps the port: those of Go's net package
	// bind beside it, as they set SO_REUSEADDR, too.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	err = errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("bound to %v", bound)
	}
	return strconv.Itoa(at.Port)
}

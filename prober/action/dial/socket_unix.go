// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dial

import (
	"errors"
	"net"
	"os"
	"syscall"
)

func setLinger(fd uintptr, on bool, seconds int32) error {
	linger := syscall.Linger{Linger: seconds}
	if on {
		linger.Onoff = 1
	}
	return syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &linger)
}

// connected reports whether a socket is connected.
func connected(socket syscall.RawConn) bool {
	var err error
	return socket.Control(func(fd uintptr) { _, err = syscall.Getpeername(int(fd)) }) == nil && err == nil
}

// readNow reads the bytes that have arrived, whatever the connection's deadline, and does not
// wait. ok is false if there are none; n == 0 with no error is the end of the stream.
func readNow(conn net.Conn, p []byte) (n int, err error, ok bool) { //nolint:revive // ok is not part of the error
	below, ok := conn.(syscall.Conn)
	if !ok {
		return 0, nil, false
	}
	raw, err := below.SyscallConn()
	if err != nil {
		return 0, nil, false
	}
	controlled := raw.Control(func(fd uintptr) {
		for {
			// This does not block: Go's sockets are non-blocking.
			if n, err = syscall.Read(int(fd), p); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	if controlled != nil || errors.Is(err, syscall.EAGAIN) {
		return 0, nil, false
	}
	if err != nil {
		err = &net.OpError{Op: "read", Net: "tcp", Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: os.NewSyscallError("read", err)}
	}
	return max(n, 0), err, true
}

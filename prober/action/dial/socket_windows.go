// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

func setLinger(fd uintptr, on bool, seconds int32) error {
	linger := syscall.Linger{Linger: seconds}
	if on {
		linger.Onoff = 1
	}
	return syscall.SetsockoptLinger(syscall.Handle(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &linger)
}

// connected returns false: the state of a socket is unknown on this system.
func connected(syscall.RawConn) bool { return false }

// readNow reads the bytes that have arrived, even after the connection's deadline, and waits at
// most a moment. ok is false if there are none; n == 0 with no error is the end of the stream.
func readNow(conn net.Conn, p []byte) (n int, err error, ok bool) { //nolint:revive // ok is not part of the error
	_ = conn.SetReadDeadline(time.Now().Add(CloseGrace))
	n, err = conn.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		err = nil
	case RanOut(err):
		return 0, nil, false
	}
	return n, err, true
}

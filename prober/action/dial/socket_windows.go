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

// connected says whether a socket is, as far as is known.
func connected(syscall.RawConn) bool { return false }

// readNow reads what there is, after the connection's deadline, and waits a moment for it
// at most. It returns false if there is nothing; no bytes and no error are the end of the
// stream.
func readNow(conn net.Conn, p []byte) (n int, err error, ok bool) { //nolint:revive // ok is not of the error
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A silent peer does not hold up the end of an attempt although the socket lingers.
func TestConnsClose(t *testing.T) {
	c := newConns(t.Context(), newStopwatch(time.Minute))
	address := raw(t, mute)
	held, err := c.dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := held.(*conn).Conn.(*timedConn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var linger *unix.Linger
	if sys.Control(func(fd uintptr) { linger, err = unix.GetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER) }); err != nil {
		t.Fatal(err)
	}
	if *linger != (unix.Linger{Onoff: 1, Linger: 1}) {
		t.Errorf("linger %+v, want on for 1 s", *linger)
	}
	c.close() // held is not closed by its user, so it is here
	if _, err := held.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
	if err := held.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if _, err := c.dial(t.Context(), "tcp", address); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial after close: %v", err)
	}
}

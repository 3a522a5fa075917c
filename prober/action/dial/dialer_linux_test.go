// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// A silent peer does not hold up the end of an attempt although the socket lingers.
func TestConnsClose(t *testing.T) {
	c := NewConns(t.Context(), NewStopwatch(time.Minute))
	address := actiontest.Raw(t, actiontest.Mute)
	held, err := c.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := held.(*Conn).Conn.(*TimedConn).Conn.(*net.TCPConn).SyscallConn()
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
	c.Close() // held is not closed by its user, so it is here
	if _, err := held.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
	if err := held.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if _, err := c.Dial(t.Context(), "tcp", address); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial after close: %v", err)
	}
}

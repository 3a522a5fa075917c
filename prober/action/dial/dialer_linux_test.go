// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// A silent peer does not hold up the end of an attempt, although the socket lingers.
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
	c.Close() // the user of held has not closed it, so Close does
	if _, err := held.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
	if err := held.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if c.count != 0 {
		t.Errorf("%d connections are counted after two closes of the only one", c.count)
	}
	if _, err := c.Dial(t.Context(), "tcp", address); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial after close: %v", err)
	}
}

// The end of an attempt ends a dial that is under way.
func TestConnsCloseEndsDials(t *testing.T) {
	c := NewConns(t.Context(), NewStopwatch(time.Minute))
	address := actiontest.BlackHole(t)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Dial(t.Context(), "tcp", address)
		ended <- err
	}()
	testutil.Until(t, "the dial has begun", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.count == 1
	})
	c.Close()
	if err := testutil.Receive(t, ended, "the end of the dial"); err == nil {
		t.Error("the dial has made a connection to nobody")
	}
}

// A connection that has met itself, or that lacks a port, is tried three times. The last result
// counts in any case.
func TestThrice(t *testing.T) {
	for err, want := range map[error][]bool{
		unix.ECONNREFUSED: {false},
		errMetItself:      {false, false, true},
		os.NewSyscallError("connect", unix.EADDRNOTAVAIL): {false, false, true},
	} {
		var lasts []bool
		_, got := thrice(func(last bool) (*socket, error) {
			lasts = append(lasts, last)
			return nil, err
		})
		if !slices.Equal(lasts, want) || !errors.Is(got, err) {
			t.Errorf("%v: tries %v, want %v, error %v", err, lasts, want, got)
		}
	}
}

// The agent dials by hand only addresses that need no look-up and no conversion.
func TestLiteral(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:127.0.0.1": false, "fe80::1%lo": false, "localhost": false, "": false,
	} {
		for port, ok := range map[int]bool{0: false, 1: want, 65535: want, 65536: false} {
			if _, got := Literal(host, port); got != ok {
				t.Errorf("%q, port %d: %v", host, port, got)
			}
		}
	}
}

// At the end of an attempt, a dial ends if its socket is not connected. If the socket is connected,
// the agent itself has something to do, and the dial goes on for a while.
func TestNameWaitsForTheAgent(t *testing.T) {
	address := actiontest.Raw(t, actiontest.Mute)
	to := addrPort(t, address)
	for name, ahead := range map[string]bool{"not connected": false, "connected": true} {
		synctest.Test(t, func(t *testing.T) {
			dialer := &net.Dialer{Control: func(_, _ string, socket syscall.RawConn) error {
				if ahead {
					var err error
					if socket.Control(func(fd uintptr) { err = connectHere(int(fd), to) }); err != nil {
						return err
					}
				}
				time.Sleep(time.Second + Stretch/2)
				return nil
			}}
			conn, err := Name(t.Context(), dialer, address, NewStopwatch(time.Second), false)
			if err == nil {
				conn.Close()
			}
			if (err == nil) != ahead || err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
}

// connectHere connects a socket to a server on this machine.
func connectHere(fd int, to netip.AddrPort) error {
	address := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	err := connectTo(fd, address)
	for pending(err) {
		err = connectTo(fd, address)
	}
	return err
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

func addrPort(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// A connection made by hand has the same errors as a connection of a net.Dialer.
func TestSocketErrors(t *testing.T) {
	for _, address := range []string{actiontest.ClosedPort(t), "[::1]:1", "255.255.255.255:80", "[ff02::1]:80"} {
		_, want := net.DialTimeout("tcp", address, 10*time.Second)
		_, got := IP(t.Context(), addrPort(t, address), NewStopwatch(10*time.Second), time.Time{})
		knocked := Knock(t.Context(), addrPort(t, address), NewStopwatch(10*time.Second))
		if want == nil || got == nil || knocked == nil {
			t.Fatalf("%s: errors %v, %v, want %v", address, got, knocked, want)
		}
		if got.Error() != want.Error() || knocked.Error() != want.Error() || action.Classify(got) != action.Classify(want) {
			t.Errorf("%s: errors %q, %q, want %q", address, got, knocked, want)
		}
	}

	address := actiontest.Raw(t, actiontest.ResetBy(""))
	ours, err := IP(t.Context(), addrPort(t, address), NewStopwatch(10*time.Second), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	for _, conn := range []net.Conn{ours, theirs} {
		conn.Write([]byte("x"))
		_, err := conn.Read(make([]byte, 1))
		want := "read tcp " + conn.LocalAddr().String() + "->" + address + ": read: connection reset by peer"
		if !errors.Is(err, syscall.ECONNRESET) || err.Error() != want {
			t.Errorf("%T: error %v, want %s", conn, err, want)
		}
		conn.SetDeadline(Past)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !action.IsTimeout(err) {
			t.Errorf("%T: error %v, want a timeout", conn, err)
		}
		conn.Close()
		if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%T: error %v after the close", conn, err)
		}
	}
}

// A socket lingers as a kubelet's socket does, and sends at once.
func TestSocketOptions(t *testing.T) {
	fd, _, err := open(netip.MustParseAddrPort("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	linger, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	if err != nil || *linger != (unix.Linger{Onoff: 1, Linger: 1}) {
		t.Errorf("linger %+v, error %v; want on for 1 s", linger, err)
	}
	if noDelay, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || noDelay != 1 {
		t.Errorf("TCP_NODELAY %d, error %v", noDelay, err)
	}
}

// A socket that is reset lingers for no time. A socket that is let go does not linger.
func TestSocketLingers(t *testing.T) {
	conn, err := IP(t.Context(), addrPort(t, actiontest.Raw(t, actiontest.Mute)), NewStopwatch(10*time.Second), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := conn.(*socket)
	for seconds, want := range map[int]unix.Linger{-1: {}, 0: {Onoff: 1}, 5: {Onoff: 1, Linger: 5}} {
		if err := s.SetLinger(seconds); err != nil {
			t.Fatal(err)
		}
		raw, err := s.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var got *unix.Linger
		if raw.Control(func(fd uintptr) { got, err = unix.GetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER) }); err != nil || got.Onoff != want.Onoff || want.Onoff != 0 && *got != want {
			t.Errorf("%d s: linger %+v, error %v, want %+v", seconds, got, err, want)
		}
	}
}

// A connection that has met itself does not count: nobody listens there. If the range of ports
// is so small that every connection comes from the asked port, each try meets itself.
func TestSocketMeetsItself(t *testing.T) {
	fd, _, err := open(netip.MustParseAddrPort("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	err = connectTo(fd, name)
	if pending(err) {
		err = connectTo(fd, name)
	}
	if err != nil {
		needs.Missing(t, "a connection that meets itself: ", err)
	}
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
	if _, err := localOf(fd, to, false); !errors.Is(err, errMetItself) {
		t.Errorf("error %v, want %v", err, errMetItself)
	}
	if _, err := localOf(fd, to, true); err != nil {
		t.Errorf("error %v in the last try", err)
	}
}

// An attempt waits for a connection until the connection is there, the time is up, or the
// attempt is stopped.
func TestSocketWaits(t *testing.T) {
	address := actiontest.BlackHole(t)
	to := addrPort(t, address)
	began := time.Now()
	if err := Knock(t.Context(), to, NewStopwatch(100*time.Millisecond)); !action.IsTimeout(err) || err.Error() != "dial tcp "+address+": i/o timeout" {
		t.Errorf("error %v, want a timeout", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond || took > 2*time.Second {
		t.Errorf("took %v, deadline after 100ms", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began = time.Now()
	if err := Knock(ctx, to, NewStopwatch(time.Minute)); err == nil {
		t.Error("no error")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v, stopped after 50ms", took)
	}
}

// At the end of an attempt, a look shows whether the socket is connected by now. The user's own
// deadline ends the wait without a look.
func TestSocketLooksAtTheEnd(t *testing.T) {
	to := addrPort(t, actiontest.Raw(t, actiontest.Mute))
	for _, c := range []struct {
		ended bool
		until time.Time
	}{{true, time.Time{}}, {false, Past}} {
		fd, address, err := open(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := connectHere(fd, to); err != nil {
			t.Fatal(err)
		}
		s := &socket{file: os.NewFile(uintptr(fd), "tcp"), to: to}
		defer s.Close()
		if err := s.SetDeadline(Past); err != nil {
			t.Fatal(err)
		}
		watch := NewStopwatch(10 * time.Second)
		watch.ended = c.ended
		err = s.await(t.Context(), address, &TimedConn{Conn: s, Watch: watch, write: c.until})
		if (err == nil) != c.ended || err != nil && !RanOut(err) {
			t.Errorf("ended %t: error %v", c.ended, err)
		}
	}
}

// If a server begins to accept late, the attempt still connects: the system asks again after a
// second.
func TestSocketIsThereLater(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	to := addrPort(t, HostPort("127.0.0.1", name.(*unix.SockaddrInet4).Port))
	for {
		conn, err := IP(t.Context(), to, NewStopwatch(50*time.Millisecond), time.Time{})
		if err != nil {
			break // the queue is full
		}
		defer conn.Close()
	}
	ended := make(chan error, 1)
	go func() {
		conn, err := IP(t.Context(), to, NewStopwatch(20*time.Second), time.Time{})
		if err == nil {
			_, err = conn.Write([]byte("x"))
			conn.Close()
		}
		ended <- err
	}()
	asked := fmt.Sprintf(":%04X 02 ", to.Port()) // remote port, SYN_SENT
	testutil.Until(t, "a first SYN had no answer", func() bool {
		sockets, err := os.ReadFile("/proc/self/net/tcp")
		return err == nil && strings.Contains(string(sockets), asked)
	})
	accepted, _, err := unix.Accept(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(accepted)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

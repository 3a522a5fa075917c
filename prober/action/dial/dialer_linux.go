// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// errNoPoller is the error of a connection that the runtime cannot poll, because the kernel has
// no more memory or watches for this process.
var errNoPoller = os.NewSyscallError("epoll_ctl", unix.ENOBUFS)

// socket is a TCP connection to an IP address, made by hand, because a net.Dialer costs as much
// as the connection itself. On the wire and in its errors it equals a net.TCPConn.
type socket struct {
	file  *os.File
	local netip.AddrPort
	to    netip.AddrPort
}

// IP connects to an address while the attempt lasts, but no longer than until, unless that is
// zero. The connection's deadline is the end of the first step.
func IP(ctx context.Context, to netip.AddrPort, watch *Stopwatch, until time.Time) (net.Conn, error) {
	s, err := reach(ctx, to, watch, until, true)
	if err != nil {
		return nil, dialError(to, err)
	}
	return s, nil
}

// Knock connects to an address while the attempt lasts, and closes the connection.
func Knock(ctx context.Context, to netip.AddrPort, watch *Stopwatch) error {
	s, err := reach(ctx, to, watch, time.Time{}, false)
	if err != nil {
		return dialError(to, err)
	}
	if s != nil {
		LetGo(s)
	}
	return nil
}

// reach connects to an address. If keep is false and the connection is there without a wait, as
// on the same machine, reach closes the connection and returns nil.
//
// Like net.Dialer, reach tries again if a connection has met itself (on an ephemeral port where
// nobody listens) or if there was no port.
func reach(ctx context.Context, to netip.AddrPort, watch *Stopwatch, until time.Time, keep bool) (*socket, error) {
	return thrice(func(last bool) (*socket, error) { return reachOnce(ctx, to, watch, until, keep, last) })
}

// thrice calls connect up to three times, if the connection has met itself or there was no port.
// last says that a call is the last.
func thrice(connect func(last bool) (*socket, error)) (*socket, error) {
	for try := 1; ; try++ {
		last := try == 3
		s, err := connect(last)
		if last || !errors.Is(err, errMetItself) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return s, err
		}
	}
}

var errMetItself = errors.New("the connection has met itself")

func reachOnce(ctx context.Context, to netip.AddrPort, watch *Stopwatch, until time.Time, keep, last bool) (*socket, error) {
	fd, address, err := open(to)
	if err != nil {
		return nil, err
	}
	err = connectTo(fd, address)
	if pending(err) {
		// On the same machine the answer is there by now; the second call returns it.
		err = connectTo(fd, address)
	}
	if err != nil && !pending(err) {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("connect", err)
	}
	connected := err == nil
	if connected && !keep {
		_, err := localOf(fd, to, last)
		// A close has nothing to wait for.
		_ = setLinger(uintptr(fd), false, 0)
		_ = unix.Close(fd)
		return nil, err
	}

	s := &socket{file: os.NewFile(uintptr(fd), "tcp"), to: to}
	if s.file.SetDeadline(earlier(watch.Begin(), until)) != nil {
		err = errNoPoller
	} else if !connected {
		err = s.await(ctx, address, &TimedConn{Conn: s, Watch: watch, write: until})
	}
	if err == nil {
		s.local, err = localOf(fd, to, last)
	}
	runtime.KeepAlive(s.file)
	if err != nil {
		LetGo(s)
		return nil, err
	}
	return s, nil
}

// open returns a socket, and the address in the form of the system call.
func open(to netip.AddrPort) (int, unix.Sockaddr, error) {
	var address unix.Sockaddr
	family := unix.AF_INET
	if to.Addr().Is4() {
		address = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	} else {
		family = unix.AF_INET6
		address = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	// A probe without either is better than none: errors are dropped.
	_ = setLinger(uintptr(fd), true, LingerSeconds)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return fd, address, nil
}

// connectTo begins to connect a socket or, called again, returns the state of that.
func connectTo(fd int, address unix.Sockaddr) error {
	err := unix.Connect(fd, address)
	if errors.Is(err, unix.EISCONN) {
		return nil // some emulations of Linux return this for success
	}
	return err
}

// pending reports whether err means that a connection is being made.
func pending(err error) bool {
	return errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EALREADY) || errors.Is(err, unix.EINTR)
}

// await waits until the socket is connected or the connection has failed. It calls connectTo,
// which returns a pending error until then.
func (s *socket) await(ctx context.Context, address unix.Sockaddr, timed *TimedConn) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	defer CutBy(ctx, timed)()
	timed.Watch.Move()
	var failure error
	look := func(fd uintptr) bool {
		failure = connectTo(int(fd), address)
		return !pending(failure)
	}
	for {
		late := raw.Write(look)
		if late == nil {
			break
		}
		again, ended := false, false
		if RanOut(late) {
			again, ended = timed.goOn(&timed.write, s.SetWriteDeadline)
		}
		if again {
			continue
		}
		if !ended || raw.Control(func(fd uintptr) { look(fd) }) != nil || pending(failure) {
			return action.Innermost(late)
		}
		break
	}
	timed.Watch.Move()
	return os.NewSyscallError("connect", failure)
}

// localOf returns the local address. A local address that equals the remote one is an error,
// unless this is the last try.
func localOf(fd int, to netip.AddrPort, last bool) (netip.AddrPort, error) {
	var local netip.AddrPort
	name, err := unix.Getsockname(fd)
	if err != nil {
		return local, os.NewSyscallError("getsockname", err)
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		local = netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
	case *unix.SockaddrInet6:
		local = netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port))
	}
	if local == to && !last {
		return local, errMetItself
	}
	return local, nil
}

// dialError returns the error that a net.Dialer would return.
func dialError(to netip.AddrPort, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	return n, s.opError("read", err)
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	return n, s.opError("write", err)
}

// SyscallConn implements syscall.Conn.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return s.file.SyscallConn() }

func (s *socket) Close() error                  { return s.opError("close", s.file.Close()) }
func (s *socket) LocalAddr() net.Addr           { return net.TCPAddrFromAddrPort(s.local) }
func (s *socket) RemoteAddr() net.Addr          { return net.TCPAddrFromAddrPort(s.to) }
func (s *socket) SetDeadline(t time.Time) error { return s.opError("set", s.file.SetDeadline(t)) }
func (s *socket) SetReadDeadline(t time.Time) error {
	return s.opError("set", s.file.SetReadDeadline(t))
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	return s.opError("set", s.file.SetWriteDeadline(t))
}

// SetLinger is like that of a net.TCPConn.
func (s *socket) SetLinger(seconds int) error {
	raw, err := s.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = setLinger(fd, seconds >= 0, int32(max(seconds, 0))) })
	}
	return s.opError("set", err)
}

// opError returns the error that a net.TCPConn would return in place of a file's error.
func (s *socket) opError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if file, ok := errors.AsType[*os.PathError](err); ok {
		err = file.Err
	}
	if errors.Is(err, os.ErrClosed) {
		err = net.ErrClosed
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

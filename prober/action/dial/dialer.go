// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package dial connects to targets, and keeps the time of attempts. All actions measure
// their timeouts with a Stopwatch; those that use the network share the connections, the
// look-ups of names and the sockets of this package.
package dial

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// LingerSeconds is the kubelet's (rules 9.11 and 10.3): how long a close may wait for
// the peer to acknowledge. On Linux 6.18 that is all it does: as many connections
// stay in TIME_WAIT with it as without. So a close of our own does not wait: see LetGo.
const LingerSeconds = 1

// CloseGrace is how long an attempt that has ended waits for its connections to be
// closed by the library that uses them, before it resets what is left.
const CloseGrace = 10 * time.Millisecond

// NewDialer returns a dialer of probe connections.
func NewDialer() *net.Dialer {
	return &net.Dialer{
		// No probe's connection lives long enough for one; this saves system calls.
		KeepAlive: -1,
		Control: func(_, _ string, c syscall.RawConn) error {
			// A probe without linger is better than none: the error is dropped.
			return c.Control(func(fd uintptr) { _ = setLinger(fd, true, LingerSeconds) })
		},
	}
}

// Name connects to a name while the attempt lasts. The connection's deadline is the
// end of the first step. If its addresses are to share the time, one that does not answer
// is given up in favor of the next; net/http's do not.
func Name(ctx context.Context, d *net.Dialer, address string, watch *Stopwatch, share bool) (net.Conn, error) {
	var last atomic.Pointer[syscall.RawConn]
	// Before there is a socket, names are looked up.
	mine := func() bool { socket := last.Load(); return socket == nil || connected(*socket) }
	ctx, cancel := watch.Context(ctx, share, mine)
	defer cancel()
	named := *d
	named.Control = func(network, address string, socket syscall.RawConn) error {
		last.Store(&socket)
		watch.Move()
		if d.Control == nil {
			return nil
		}
		return d.Control(network, address, socket)
	}
	conn, err := dialHost(ctx, &named, "tcp", address)
	switch {
	case err == nil:
		watch.Move()
		watch.miss()
		_ = conn.SetDeadline(watch.Begin())
	case last.Load() == nil:
		watch.outwait()
	}
	return conn, err
}

// Conns are the connections of one attempt. They exist because net/http dials and
// closes in goroutines of its own: it lets a dial that nobody waits for any more run
// on for minutes, and closes after it has returned. close ends all of it.
type Conns struct {
	watch  *Stopwatch
	ctx    context.Context // of the dials
	cancel context.CancelFunc

	mu    sync.Mutex
	open  map[*Conn]struct{}
	count int           // open ones and dials
	over  chan struct{} // made by close, closed when count is 0
}

// lingerer is a connection of which one can say how its close is to go.
type lingerer interface{ SetLinger(seconds int) error }

// LetGo closes a connection in good manners, but does not wait until its peer has
// acknowledged that: the system sees to it.
func LetGo(c net.Conn) {
	if l, ok := c.(lingerer); ok {
		_ = l.SetLinger(-1)
	}
	_ = c.Close()
}

// Past is a deadline that has passed.
var Past = time.Unix(1, 0)

// CutBy ends what is waited for on a connection when ctx is done, until the function
// that it returns is called; that one waits for the end of it.
func CutBy(ctx context.Context, c net.Conn) (stop func()) {
	var cutting sync.WaitGroup
	cutting.Add(1)
	stopped := context.AfterFunc(ctx, func() {
		defer cutting.Done()
		_ = c.SetDeadline(Past)
	})
	return func() {
		if stopped() {
			return
		}
		cutting.Wait()
	}
}

// Literal returns the address of a host that is an IP address and needs no resolver.
// One with a zone needs the names of interfaces, which net.Dialer knows.
func Literal(host string, port int) (netip.AddrPort, bool) {
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Zone() != "" || ip.Is4In6() || port < 1 || port > 65535 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, uint16(port)), true
}

// NewConns returns the connections of an attempt, which the attempt has to Close.
func NewConns(ctx context.Context, watch *Stopwatch) *Conns {
	c := &Conns{watch: watch, open: make(map[*Conn]struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// Dial is a DialContext. It ends when ctx or the attempt does.
func (c *Conns) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	c.mu.Lock()
	if c.over != nil {
		c.mu.Unlock()
		return nil, net.ErrClosed
	}
	c.count++
	c.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	raw, err := Name(ctx, NewDialer(), address, c.watch, false)
	if err != nil {
		c.release(nil)
		return nil, err
	}
	made := &Conn{Conn: &TimedConn{Conn: raw, Watch: c.watch}, conns: c}
	c.mu.Lock()
	c.open[made] = struct{}{}
	late := c.over != nil
	c.mu.Unlock()
	if late {
		made.reset()
		return nil, net.ErrClosed
	}
	return made, nil
}

// Adopt makes c responsible for a connection that another one has dialed.
func (c *Conns) Adopt(made *Conn) {
	made.conns = c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.open[made] = struct{}{}
}

// release takes note that a dial came to nothing, or that a connection was closed.
func (c *Conns) release(closed *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, closed)
	c.count--
	if c.count == 0 && c.over != nil {
		close(c.over)
	}
}

// Reset ends the open connections at once and without a goodbye, even if their peer
// is silent and a close would linger.
func (c *Conns) Reset() {
	c.mu.Lock()
	left := make([]*Conn, 0, len(c.open))
	for open := range c.open {
		left = append(left, open)
	}
	c.mu.Unlock()
	for _, open := range left {
		open.reset()
	}
}

// Close cancels dials and sees to it that every connection is closed. It first gives
// who uses a connection the chance to do so in good manners, as TLS wants it.
func (c *Conns) Close() {
	c.cancel()
	c.mu.Lock()
	over := make(chan struct{})
	c.over = over
	if c.count == 0 {
		close(over)
	}
	c.mu.Unlock()

	select {
	case <-over:
		return
	default:
	}
	grace := time.NewTimer(CloseGrace)
	defer grace.Stop()
	select {
	case <-over:
	case <-grace.C:
		c.Reset()
	}
}

// Conn is a connection that tells when it is closed.
type Conn struct {
	net.Conn
	conns  *Conns // who is told; nil is nobody
	closed atomic.Bool
}

// Close closes the connection, the first time. Who comes second does not wait for
// the first, whom the system may keep for as long as the socket lingers.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if c.conns != nil {
		defer c.conns.release(c)
	}
	return c.Conn.Close()
}

// reset closes the connection with a reset.
func (c *Conn) reset() {
	if l, ok := c.Conn.(lingerer); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}

// HostPort is net.JoinHostPort for a number: it brackets IPv6 addresses.
func HostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// isName says whether a host has to be looked up.
func isName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != ""
}

// Files returns how many files a connection to a host takes at most: its own, or for a
// name the sockets of the look-up, then the connections to two addresses.
func Files(host string) int {
	if isName(host) {
		return 2
	}
	return 1
}

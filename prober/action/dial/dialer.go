// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package dial connects to targets and keeps the time of attempts. All actions measure their
// timeouts with a Stopwatch; actions that use the network share the connections, name look-ups
// and sockets of this package.
package dial

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// LingerSeconds is how long a close may wait for the peer's acknowledgement, as in the kubelet
// (rules 9.11 and 10.3). On Linux 6.18 lingering has no other effect: as many connections stay
// in TIME_WAIT as without. The agent's own closes therefore do not wait: see LetGo.
const LingerSeconds = 1

// CloseGrace is how long an attempt that has ended waits for a library to close its
// connections, before it resets the rest.
const CloseGrace = 10 * time.Millisecond

// NewDialer returns a dialer of probe connections.
func NewDialer() *net.Dialer {
	return &net.Dialer{
		// No probe's connection lives long enough for a keep-alive; this saves system calls.
		KeepAlive: -1,
		Control: func(_, _ string, c syscall.RawConn) error {
			// A probe without linger is better than none: the error is dropped.
			return c.Control(func(fd uintptr) { _ = setLinger(fd, true, LingerSeconds) })
		},
	}
}

// Name connects to a name while the attempt lasts. The connection's deadline is the end of the
// first step. If share is true, the name's addresses share the time: after a while without an
// answer, Name tries the next address. net/http does not share.
func Name(ctx context.Context, d *net.Dialer, address string, watch *Stopwatch, share bool) (net.Conn, error) {
	var last atomic.Pointer[syscall.RawConn]
	// Until there is a socket, the name is being looked up.
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

// Conns holds the connections of one attempt. net/http dials and closes in goroutines of its
// own: an abandoned dial runs on for minutes, and a connection may be closed after the call has
// returned. Close ends all of them.
type Conns struct {
	// Socket is the path of the Unix socket to which all connections go; empty for addresses.
	Socket string

	watch  *Stopwatch
	ctx    context.Context // of the dials
	cancel context.CancelFunc

	mu    sync.Mutex
	open  map[*Conn]struct{}
	count int           // open connections and dials
	over  chan struct{} // made by Close, closed when count is 0
}

// lingerer is a connection whose close can be configured.
type lingerer interface{ SetLinger(seconds int) error }

// LetGo closes a connection gracefully, but leaves the wait for the peer's acknowledgement to
// the system.
func LetGo(c net.Conn) {
	if l, ok := c.(lingerer); ok {
		_ = l.SetLinger(-1)
	}
	_ = c.Close()
}

// Past is a deadline that has passed.
var Past = time.Unix(1, 0)

// CutBy ends reads and writes on a connection when ctx is done, until stop is called. stop waits
// until CutBy no longer touches the connection.
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

// Literal returns the address of a host that is an IP address without a zone. A zone needs the
// names of interfaces, which net.Dialer knows.
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

// Dial is a DialContext function. It ends when ctx or the attempt does.
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
	raw, err := c.connect(ctx, address)
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

// connect connects to the socket or, without one, to an address.
func (c *Conns) connect(ctx context.Context, address string) (net.Conn, error) {
	if c.Socket != "" {
		return Unix(ctx, c.Socket, c.watch, time.Time{})
	}
	return Name(ctx, NewDialer(), address, c.watch, false)
}

// Adopt makes c responsible for a connection that somebody else has dialed.
func (c *Conns) Adopt(made *Conn) {
	made.conns = c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.open[made] = struct{}{}
}

// release records that a dial has failed, or that a connection was closed.
func (c *Conns) release(closed *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, closed)
	c.count--
	if c.count == 0 && c.over != nil {
		close(c.over)
	}
}

// Reset resets the open connections at once, even if their peer is silent and a close would
// linger.
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

// Close cancels dials and closes every connection. It first gives the users of connections time
// to close them gracefully, as TLS requires.
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

// Conn is a connection that tells its Conns when it is closed.
type Conn struct {
	net.Conn
	conns  *Conns // may be nil
	closed atomic.Bool
}

// Close closes the connection. A second Close does not wait for the first, which may take as
// long as the socket lingers.
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

// isName reports whether a host must be looked up: it is neither an IP address nor a path.
func isName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != "" && !strings.Contains(host, "/")
}

// Files returns how many files a connection to a host has open at most: its own or, for a name,
// the sockets of the look-up and then the connections to two addresses.
func Files(host string) int {
	if isName(host) {
		return 2
	}
	return 1
}

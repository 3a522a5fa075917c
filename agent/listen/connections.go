// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// fewestConnections is how many connections a listener may have at least.
	fewestConnections = 4

	// mostConnectionFiles bounds the connections to all listeners, for the sake of memory.
	mostConnectionFiles = 512

	// respite is how long nobody is closed whose request is just coming, and the time
	// between two batches of newcomers to a listener that is full.
	respite = 50 * time.Millisecond

	// servingTime is how much longer a connection may stay whose request is being served.
	servingTime = 5 * time.Second

	// retryAccept is how long a listener waits for a file, or for a place, until it looks again.
	retryAccept = 5 * time.Millisecond

	// HeaderBytes is how large the header of a request may be. net/http takes 4 KiB more than
	// it is told, which makes 8 KiB.
	HeaderBytes = 4 << 10

	// crowdTold is how often the log tells of a crowd at most.
	crowdTold = time.Minute
)

// Files returns how many of so many open files are for connections to the agent.
// Attempts have a share of their own, which these leave alone.
func Files(limit int) int { return min(limit/4, mostConnectionFiles) }

// Bounded has a bounded number of open connections, and accepts beyond it: for each
// newcomer it then closes the connection that has waited longest for its client. So a
// crowd that asks nothing, never ends asking, or does not read its answers keeps nobody out.
type Bounded struct {
	net.Listener
	log     *slog.Logger
	limit   int
	reserve *Reserve

	freed  chan struct{} // has an entry when there may be a place again
	closed chan struct{}
	close  func()

	// The business of Accept alone: what is left of a batch, when it began, and what a
	// newcomer has sent.
	batch  int
	began  time.Time
	peeked [2 * HeaderBytes]byte

	mu   sync.Mutex
	open map[*boundedConn]struct{}
	told time.Time
}

// NewBounded returns l with a limit of connections. It takes from the reserve when
// no file can be opened.
func NewBounded(l net.Listener, limit int, r *Reserve, log *slog.Logger) *Bounded {
	limit = max(limit, fewestConnections)
	closed := make(chan struct{})
	return &Bounded{
		Listener: l,
		log:      log,
		limit:    limit,
		reserve:  r,
		freed:    make(chan struct{}, 1),
		closed:   closed,
		close:    sync.OnceFunc(func() { close(closed) }),
		open:     map[*boundedConn]struct{}{},
	}
}

// Accept returns the next connection. For room it waits for no client.
func (l *Bounded) Accept() (net.Conn, error) {
	for {
		l.pace()
		inner, err := l.Listener.Accept()
		if err == nil {
			if c := l.admit(inner); c != nil {
				return c, nil
			}
			continue
		}
		if !outOfFiles(err) {
			return nil, err
		}
		l.tell(err.Error())
		if !l.reserve.release() && !l.evict() {
			l.wait(retryAccept)
		}
	}
}

// pace makes newcomers to a full listener come in batches, each of all that are in the
// kernel's queue. However quickly a crowd connects again, nobody waits long in the queue,
// and the last of a batch stay until the next.
func (l *Bounded) pace() {
	if l.batch > 0 || !l.full() {
		return
	}
	queued, room := backlog(l.Listener)
	for time.Since(l.began) < respite && queued < room/2 && l.wait(retryAccept) {
		queued, room = backlog(l.Listener)
	}
	l.began, l.batch = time.Now(), max(1, queued)
}

// wait waits for so long, or returns false when the listener is closed.
func (l *Bounded) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.closed:
		return false
	}
}

// outOfFiles reports whether a later try may succeed. net/http would make that wait for up
// to a second, or end the process.
func outOfFiles(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// Close closes the listener, not its connections.
func (l *Bounded) Close() error {
	l.close()
	return l.Listener.Close()
}

func (l *Bounded) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) >= l.limit // and will not be fuller: nobody but Accept admits
}

// admit makes room for a connection. It returns nil if that is not worth it: the
// connection comes with no request, and enough of the batch are behind it to take its place.
func (l *Bounded) admit(inner net.Conn) *boundedConn {
	if l.batch > 0 {
		l.batch--
	}
	if l.full() {
		if l.batch > l.limit && !asks(inner, l.peeked[:]) {
			_ = inner.Close()
			return nil
		}
		l.makeRoom()
		l.tell("limit reached")
	}
	c := &boundedConn{Conn: inner, l: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return c
}

// makeRoom closes the connection that has waited longest, or waits itself until one has
// waited long enough or a request has been served.
func (l *Bounded) makeRoom() {
	again := time.NewTicker(retryAccept)
	defer again.Stop()
	for l.full() && !l.evict() {
		select {
		case <-l.freed:
		case <-again.C:
		case <-l.closed:
			return
		}
	}
}

// evict closes the connection that has waited longest, if that is longer than the respite.
func (l *Bounded) evict() bool {
	l.mu.Lock()
	victim, since := l.longest()
	if victim == nil || time.Since(since) < respite {
		l.mu.Unlock()
		return false
	}
	delete(l.open, victim)
	l.mu.Unlock()
	runtime.Gosched() // whoever has something to read or to answer goes first
	_ = victim.Close()
	return true
}

// tell logs that there is a crowd, but not at each of its clients.
func (l *Bounded) tell(reason string) {
	now := time.Now()
	l.mu.Lock()
	tell := now.Sub(l.told) >= crowdTold
	if tell {
		l.told = now
	}
	l.mu.Unlock()
	if tell {
		l.log.Warn("too many connections: the agent closes those that have waited longest for their clients",
			"address", l.Addr().String(), "reason", reason, "limit", l.limit)
	}
}

// longest returns that connection, and since when it waits. One that nobody has begun to
// read is none: its request may be there.
func (l *Bounded) longest() (longest *boundedConn, since time.Time) {
	for c := range l.open {
		at := c.since
		if c.serving {
			at = at.Add(servingTime)
		}
		if !at.IsZero() && (longest == nil || at.Before(since)) {
			longest, since = c, at
		}
	}
	return longest, since
}

// NoteState is a hook of http.Server. While there is a crowd, a connection is not kept for
// another request.
func NoteState(inner net.Conn, state http.ConnState) {
	if secured, ok := inner.(*tls.Conn); ok {
		inner = secured.NetConn()
	}
	c, ok := inner.(*boundedConn)
	if !ok {
		return
	}
	if state == http.StateActive {
		c.note(true)
	}
	if state == http.StateIdle {
		c.note(false)
		if c.l.full() {
			_ = c.Close()
		}
	}
}

// boundedConn is a connection of a Bounded.
type boundedConn struct {
	net.Conn
	l    *Bounded
	read sync.Once

	// Guarded by l.mu.
	serving bool      // a request; else it waits for its client
	since   time.Time // zero: nobody has begun to read it
}

// note says that from now on a connection is served, or waits for its client. It returns
// what was so far.
func (c *boundedConn) note(serving bool) (before bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	before, c.serving, c.since = c.serving, serving, time.Now()
	return before
}

func (c *boundedConn) Read(p []byte) (int, error) {
	c.read.Do(func() { c.note(false) })
	return c.Conn.Read(p)
}

// Write may have to wait for a client that does not read.
func (c *boundedConn) Write(p []byte) (int, error) {
	before := c.note(false)
	defer c.note(before)
	return c.Conn.Write(p)
}

// CloseWrite is what net/http calls when it has refused a request and still reads for a
// while, so that the client gets its answer.
func (c *boundedConn) CloseWrite() error {
	c.note(false)
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// Close can be called more than once.
func (c *boundedConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.open, c)
	c.l.mu.Unlock()
	err := c.Conn.Close()
	c.l.reserve.fill()
	select {
	case c.l.freed <- struct{}{}:
	default: // one entry will do
	}
	return err
}

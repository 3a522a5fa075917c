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
	// fewestConnections is the number of connections that every listener may have.
	fewestConnections = 4

	// mostConnectionFiles bounds the connections to all listeners, for the sake of memory.
	mostConnectionFiles = 512

	// respite is how long a connection is safe while its request may be coming, and the time
	// between two batches of newcomers to a full listener.
	respite = 50 * time.Millisecond

	// servingTime is how much longer a connection is safe while its request is being served.
	servingTime = 5 * time.Second

	// retryAccept is the time between two looks for a free file or place.
	retryAccept = 5 * time.Millisecond

	// HeaderBytes is the limit for the header of a request. net/http adds 4 KiB, which makes
	// 8 KiB.
	HeaderBytes = 4 << 10

	// crowdTold is the least time between two log lines about a crowd.
	crowdTold = time.Minute
)

// Files returns how many open files under a limit are for connections to the agent. Attempts
// have a share of their own.
func Files(limit int) int { return min(limit/4, mostConnectionFiles) }

// Bounded is a listener with a bounded number of open connections. For each newcomer beyond
// the bound it closes the connection that has waited longest for its client, so that clients
// that send nothing, never finish, or do not read their answers keep no other client out.
type Bounded struct {
	net.Listener
	log     *slog.Logger
	limit   int
	reserve *Reserve

	freed  chan struct{} // has an entry when there may be a free place
	closed chan struct{}
	close  func()

	// Used by Accept alone: the rest of a batch, when the batch began, and what a newcomer has
	// sent.
	batch  int
	began  time.Time
	peeked [2 * HeaderBytes]byte

	mu   sync.Mutex
	open map[*boundedConn]struct{}
	told time.Time
}

// NewBounded returns l with a limit of connections. The listener takes files from the reserve
// when no other can be opened.
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

// Accept returns the next connection. It never waits for a client to make room.
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

// pace lets newcomers to a full listener in by batches, each of all connections in the kernel's
// queue. However quickly a crowd reconnects, no client waits long in the queue, and the last of
// a batch stay until the next batch.
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

// wait waits for d. It returns false if the listener is closed meanwhile.
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

// outOfFiles reports whether a later Accept may succeed. With such an error net/http would wait
// up to a second, or end the process.
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
	return len(l.open) >= l.limit // the number cannot grow meanwhile: only Accept admits
}

// admit makes room for a connection. It returns nil for a connection without a request if
// enough of the batch are behind it to take its place.
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

// makeRoom closes the connection that has waited longest. If none has waited long enough,
// makeRoom waits until one has, or until a request has been served.
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

// evict closes the connection that has waited longest, if it has waited longer than respite.
func (l *Bounded) evict() bool {
	l.mu.Lock()
	victim, since := l.longest()
	if victim == nil || time.Since(since) < respite {
		l.mu.Unlock()
		return false
	}
	delete(l.open, victim)
	l.mu.Unlock()
	runtime.Gosched() // goroutines with a request to read or to answer go first
	_ = victim.Close()
	return true
}

// tell logs that there is a crowd, at most once in crowdTold.
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

// longest returns the connection that has waited longest, and since when. A connection that no
// server reads yet does not count: its request may be there.
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
	serving bool      // a request is being served; else the connection waits for its client
	since   time.Time // zero: no server reads the connection yet
}

// note records whether the connection is served or waits for its client from now on. It returns
// the value before.
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

// Write counts as waiting for the client, which may not read.
func (c *boundedConn) Write(p []byte) (int, error) {
	before := c.note(false)
	defer c.note(before)
	return c.Conn.Write(p)
}

// CloseWrite is for net/http, which calls it when it has refused a request and still reads for
// a while, so that the client gets the answer.
func (c *boundedConn) CloseWrite() error {
	c.note(false)
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// Close closes the connection. It may be called more than once.
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// crowded is a server behind a bounded listener.
type crowded struct {
	t       *testing.T
	l       *Bounded
	address string
	log     *testutil.Log
	hang    chan struct{} // closing it ends requests for /hang
	kept    atomic.Int32  // how often the server kept a connection for another request
}

func newCrowded(t *testing.T, inner net.Listener, limit int, r *Reserve) *crowded {
	t.Helper()
	c := &crowded{t: t, address: inner.Addr().String(), log: &testutil.Log{}, hang: make(chan struct{})}
	c.l = NewBounded(inner, limit, r, slog.New(slog.NewTextHandler(c.log, nil)))
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/hang", func(w http.ResponseWriter, _ *http.Request) {
		<-c.hang
		_, _ = io.WriteString(w, "ok")
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 64<<10))
		}
	})
	noteState := func(inner net.Conn, state http.ConnState) {
		NoteState(inner, state)
		if state == http.StateIdle {
			c.kept.Add(1)
		}
	}
	server := &http.Server{Handler: mux, ConnState: noteState, ErrorLog: slog.NewLogLogger(c.l.log.Handler(), slog.LevelError)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(c.l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended: %v", err)
		}
		if n := c.open(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
	return c
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *crowded) open() int {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return len(c.l.open)
}

// seen waits until the server waits for requests on that many connections and serves that many
// others.
func (c *crowded) seen(waiting, serving int) {
	c.t.Helper()
	testutil.Eventually(c.t, fmt.Sprintf("%d connections wait, the server answers %d", waiting, serving), func() error {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		w, s := 0, 0
		for conn := range c.l.open {
			switch {
			case conn.serving:
				s++
			case !conn.since.IsZero():
				w++
			}
		}
		if w != waiting || s != serving {
			return fmt.Errorf("%d wait, the server answers %d", w, s)
		}
		return nil
	})
}

// connect connects and sends a text.
func (c *crowded) connect(send string) net.Conn {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, send); err != nil {
		c.t.Fatal(err)
	}
	return conn
}

const aRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// answered waits for the answer to a request.
func (c *crowded) answered(conn net.Conn) {
	c.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.t.Errorf("no answer: %v", err)
		return
	}
	resp.Body.Close()
}

// isClosed waits until the server has closed a connection.
func (c *crowded) isClosed(conn net.Conn) {
	c.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, syscall.ETIMEDOUT) || isTimeout(err) {
		c.t.Errorf("not closed: %d bytes, %v", n, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A full listener accepts every newcomer. For each newcomer the listener closes the connection
// that has waited longest, idle or in the middle of a header, but no connection that the server
// answers.
func TestCrowd(t *testing.T) {
	c := newCrowded(t, loopback(t), 4, nil)
	served := c.connect("GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
	c.seen(0, 1)
	first := c.connect("")
	c.seen(1, 1)
	half := c.connect("GET / HTTP/1.1\r\nHost: ")
	c.seen(2, 1)
	c.connect("")
	c.seen(3, 1)

	asked := c.connect(aRequest)
	c.answered(asked)
	c.isClosed(first)
	c.isClosed(asked) // there is no place for asked; until it is closed, the next newcomer takes the place of another
	c.connect("")
	c.seen(3, 1)
	c.answered(c.connect(aRequest))
	c.isClosed(half)
	close(c.hang)
	c.answered(served)
	if !strings.Contains(c.log.String(), "level=WARN") || strings.Count(c.log.String(), "\n") != 1 {
		t.Errorf("the log is\n%s", c.log)
	}
}

// A server keeps a connection for another request while there are places. The connection's wait
// counts from its last request.
func TestKeptConnection(t *testing.T) {
	c := newCrowded(t, loopback(t), 4, nil)
	kept := c.connect(aRequest)
	c.answered(kept)
	silent := c.connect("")
	c.seen(2, 0)
	if _, err := io.WriteString(kept, aRequest); err != nil {
		t.Fatal(err)
	}
	c.answered(kept)
	// A connection is kept only if there is a place when its answer is complete.
	testutil.Eventually(t, "the server keeps the connection", func() error {
		if n := c.kept.Load(); n != 2 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	c.connect("")
	c.connect("")
	c.seen(4, 0)
	last := c.connect(aRequest)
	c.answered(last)
	c.isClosed(silent)
	c.isClosed(last) // there is no place for last
	if _, err := io.WriteString(kept, aRequest); err != nil {
		t.Fatal(err)
	}
	c.answered(kept)
}

// In each of the ways to keep a server waiting, a crowd of ten times the limit keeps no other
// client out.
func TestCrowds(t *testing.T) {
	for name, send := range map[string]string{
		"silent": "", "half a request": "GET / HTTP/1.1\r\nHost: ", "no reader": "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n", "nonsense": "nonsense\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, loopback(t), 8, nil)
			for range 80 {
				c.connect(send)
			}
			for range 3 {
				conn := c.connect(aRequest)
				c.answered(conn)
				if n := c.open(); n > 8 {
					t.Errorf("%d connections are open, want 8 at most", n)
				}
			}
		})
	}
}

// lacking is a listener that can open no file while lacks is positive.
type lacking struct {
	net.Listener
	lacks atomic.Int64 // how many more calls of Accept fail
	err   error
}

func (l *lacking) Accept() (net.Conn, error) {
	if l.lacks.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: l.err}
	}
	return l.Listener.Accept()
}

// If no file can be opened, a listener uses a file of its reserve and then the file of a client
// that has waited. The listener tries again soon, and no error of that sort ends it.
func TestOutOfFiles(t *testing.T) {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		inner := &lacking{Listener: loopback(t), err: lack}
		r := NewReserve(2)
		defer r.End()
		c := newCrowded(t, inner, 8, r)
		waits := c.connect("")
		c.seen(1, 0)
		inner.lacks.Store(40)
		begin := time.Now()
		c.answered(c.connect(aRequest)) // already waits in Accept
		c.answered(c.connect(aRequest))
		c.isClosed(waits)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%v: answered after %v", lack, took)
		}
		if log := c.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, lack.Error()) {
			t.Errorf("%v: the log is\n%s", lack, log)
		}
	}
}

// Accept returns errors that waiting cannot mend.
func TestListenerBreaks(t *testing.T) {
	inner := &lacking{Listener: loopback(t), err: syscall.EBADF}
	inner.lacks.Store(1)
	l := NewBounded(inner, 8, nil, slog.New(slog.DiscardHandler))
	defer l.Close()
	if _, err := l.Accept(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v, want %v", err, syscall.EBADF)
	}
}

// A reserve gives all its files, fills up again when connections close, and keeps nothing open
// after its end.
func TestReserve(t *testing.T) {
	r := NewReserve(3)
	for range 3 {
		if !r.release() {
			t.Error("the reserve is empty")
		}
	}
	if r.release() {
		t.Error("the reserve has more than it was given")
	}
	r.fill()
	if got := len(r.files); got != 3 {
		t.Errorf("%d files, want 3", got)
	}
	r.End()
	r.fill()
	if got := len(r.files); got != 0 {
		t.Errorf("%d files at the end", got)
	}
	var none *Reserve
	none.fill()
	none.End()
	if none.release() {
		t.Error("nil has files")
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// A request that fits exactly into a server's limits takes one connection. If the server accepts
// a byte less, the request has come too early, and takes a second connection.
func TestGRPCFitsExactly(t *testing.T) {
	for _, c := range []struct {
		name, service string
		limit         http2.SettingID
		of            func(q *question) uint32
		less          uint32
		connections   int32
		success       bool
	}{
		{"window", "a.b.C", http2.SettingInitialWindowSize, func(q *question) uint32 { return uint32(len(q.message)) }, 0, 1, true},
		{"smaller window", "a.b.C", http2.SettingInitialWindowSize, func(q *question) uint32 { return uint32(len(q.message)) }, 1, 2, true},
		{"headers", "a.b.C", http2.SettingMaxHeaderListSize, func(q *question) uint32 { return q.listSize }, 0, 1, true},
		{"smaller headers", "a.b.C", http2.SettingMaxHeaderListSize, func(q *question) uint32 { return q.listSize }, 1, 2, false},
		{"long, headers", strings.Repeat("s", 20000), http2.SettingMaxHeaderListSize, func(q *question) uint32 { return q.listSize }, 0, 1, true},
		{"long, smaller headers", strings.Repeat("s", 20000), http2.SettingMaxHeaderListSize, func(q *question) uint32 { return q.listSize }, 1, 1, false},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		q := newQuestion(l.Addr().String(), false, c.service, 10*time.Second)
		var connections atomic.Int32
		serve := script(func(p *peer) {
			p.WriteSettings(http2.Setting{ID: c.limit, Val: c.of(&q) - c.less})
			p.headers()
			p.WriteWindowUpdate(1, 100)
			p.rest(p.request())
		})
		address := actiontest.RawOn(t, l, func(conn net.Conn) { connections.Add(1); serve(conn) })
		got := actiontest.Attempt(t, grpcProbe(address, 10*time.Second, c.service, ""))
		if got.Success != c.success || connections.Load() != c.connections {
			t.Errorf("%s: got %+v after %d connections, want success %t after %d", c.name, got, connections.Load(), c.success, c.connections)
		}
	}
}

// A try to connect may take 20 s or, if that is longer, the pause after a failure, but no longer
// than the attempt.
func TestGRPCTimeToConnect(t *testing.T) {
	for _, c := range []struct{ timeout, pause, want time.Duration }{
		{time.Minute, time.Second, 20 * time.Second},
		{time.Minute, 30 * time.Second, 30 * time.Second},
		{10 * time.Second, time.Second, 10*time.Second + 2*dial.Stretch},
	} {
		synctest.Test(t, func(t *testing.T) {
			var left time.Duration
			g := checkOf(c.timeout)
			g.address = "127.0.0.1:1"
			g.dialer = &net.Dialer{ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
				end, _ := ctx.Deadline()
				left = time.Until(end)
				return errors.New("enough seen")
			}}
			a := &attempt{check: g, ctx: t.Context()}
			a.watch.Start(c.timeout)
			if end := a.connection(c.pause); end.how != unconnected || left != c.want {
				t.Errorf("timeout %v, pause %v: got %+v and %v to connect, want %v", c.timeout, c.pause, end, left, c.want)
			}
		})
	}
}

// A glance is enough for a plain good answer with headers of 8 KiB, even byte by byte, but not with
// larger headers.
func TestGRPCGlance(t *testing.T) {
	for size, want := range map[int]bool{0: true, 2649: true, 2650: false} {
		var answer bytes.Buffer
		p := &peer{Framer: http2.NewFramer(&answer, nil)}
		p.hpack = hpack.NewEncoder(&p.block)
		var more []string
		for range 3 { // the table makes the second and the third short
			more = append(more, "x", strings.Repeat("x", size))
		}
		p.WriteSettings()
		p.well(1, more...)
		p.WriteData(1, false, servingMessage)
		p.head(1, true, "grpc-status", "0")
		s := sights.Get().(*sight)
		status, ok := s.glance(struct {
			io.Reader
			io.Writer
		}{iotest.OneByteReader(&answer), io.Discard})
		if ok != want || ok && status != 1 {
			t.Errorf("headers of 3 × %d bytes: glance %t, want %t; unpacked %d bytes, status %d", size, ok, want, s.headers, status)
		}
		s.release()
	}
}

// If a connection was ready and the next try to connect fails, the call fails at once, like a
// call of grpc-go that does not wait for a connection.
func TestGRPCFailsToConnectAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := actiontest.RawOn(t, l, script(func(p *peer) {
		l.Close()
		p.begin()
		p.WriteGoAway(0, http2.ErrCodeNo, nil)
	}))
	got := actiontest.Attempt(t, grpcProbe(address, time.Minute, "", ""))
	if got.Success || got.Reason != action.GRPCStatus || !strings.Contains(got.Output, "connect again: ") {
		t.Errorf("got %+v", got)
	}
}

// Every status but SERVING is a failure whose text has the status' name, or its number.
func TestGRPCServing(t *testing.T) {
	for status, want := range map[int32]string{
		-1: `"-1"`, 0: `"UNKNOWN"`, 1: "service healthy", 2: `"NOT_SERVING"`, 3: `"SERVICE_UNKNOWN"`, 4: `"4"`,
	} {
		if got := serving(status); got.Success != (status == 1) || !strings.Contains(got.Output, want) {
			t.Errorf("%d: got %+v, want %s in the text", status, got, want)
		}
	}
}

// The text of a failure has the server's message without percent-encoding (rule 12.3). A message
// that is not percent-encoded correctly stays as it is.
func TestGRPCMessage(t *testing.T) {
	for message, want := range map[string]string{"no%20disk: 5%25": "no disk: 5%", "5% left": "5% left", "plain": "plain"} {
		got := checkOf(time.Second).failedWith(5, message)
		if want := "error: health rpc probe failed: rpc error: code = NotFound desc = " + want; got.Output != want {
			t.Errorf("%q: got %q, want %q", message, got.Output, want)
		}
	}
}

// An answer may use the whole window of 64 KiB, and not a byte more.
func TestGRPCWindow(t *testing.T) {
	for size, want := range map[int]bool{window: true, window + 1: false} {
		address := actiontest.Raw(t, script(func(p *peer) {
			id := p.begin()
			p.well(id)
			p.WriteData(id, false, servingMessage)
			for rest := size - len(servingMessage); rest > 0; {
				n := min(rest, 256)
				p.WriteDataPadded(id, false, nil, make([]byte, n-1))
				rest -= n
			}
			p.head(id, true, "grpc-status", "0")
		}))
		if got := actiontest.Attempt(t, grpcProbe(address, 10*time.Second, "", "")); got.Success != want {
			t.Errorf("%d bytes: got %+v, want success %t", size, got, want)
		}
	}
}

// Only the HTTP status of an interim answer must not end the answer. Any other status says that
// the server does not speak gRPC.
func TestGRPCForeignStatus(t *testing.T) {
	for status, want := range map[string]string{
		"99": `does not speak grpc: HTTP status "99"`, "100": "ended with HTTP status 100",
		"199": "ended with HTTP status 199", "200": `does not speak grpc: HTTP status "200"`,
	} {
		s := &stream{check: checkOf(time.Second)}
		if s.speaksOther(status, true); !s.ended || !strings.Contains(s.outcome.Output, want) {
			t.Errorf("%s: got %+v, want %q", status, s.outcome, want)
		}
	}
}

// A client keeps to the window of its stream while the server changes the windows of all streams.
func TestGRPCKeepsToTheWindow(t *testing.T) {
	const service = "a.b.C" // in a message of 12 bytes
	address := actiontest.Raw(t, script(func(p *peer) {
		sent := 0
		// upTo reports whether the client sends so much, and no more before it answers a PING.
		upTo := func(want int) bool {
			p.WritePing(false, [8]byte{})
			for ponged := false; !ponged || sent < want; {
				frame, err := p.ReadFrame()
				if err != nil {
					return false
				}
				switch frame := frame.(type) {
				case *http2.DataFrame:
					sent += int(frame.Length)
				case *http2.PingFrame:
					ponged = true
				}
			}
			return sent == want
		}
		initial := func(window uint32) {
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
		}
		initial(3)
		p.headers()
		if !upTo(3) { // the first request has come before the settings
			return
		}
		initial(5)
		if !upTo(5) {
			return
		}
		initial(2) // the window is 3 bytes short
		p.WriteWindowUpdate(1, 4)
		if !upTo(6) {
			return
		}
		p.WriteWindowUpdate(1, 100)
		p.rest(p.request())
	}))
	if got := actiontest.Attempt(t, grpcProbe(address, 10*time.Second, service, "")); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// An attempt ends its connection gracefully. After the deadline, or a stop, the attempt resets the
// connection, so that its close waits for no peer.
func TestGRPCHangsUp(t *testing.T) {
	for _, c := range []struct {
		name          string
		byHand        bool
		over, stopped bool
	}{
		{"by hand", true, false, false},
		{"by hand, over", true, true, false},
		{"by hand, stopped", true, false, true},
		{"by net.Dialer", false, false, false},
		{"by net.Dialer, over", false, true, false},
	} {
		ended := make(chan error, 1)
		address := actiontest.Raw(t, func(conn net.Conn) {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		})
		g := checkOf(time.Minute)
		g.address, g.dialer = address, &net.Dialer{}
		if c.byHand {
			g.literal, _ = dial.Literal(actiontest.Split(address))
		}
		ctx, stop := context.WithCancel(t.Context())
		a := &attempt{check: g, ctx: ctx}
		a.watch.Start(time.Minute)
		var err error
		if a.socket, err = a.dial(time.Time{}); err != nil {
			t.Fatal(err)
		}
		a.timed = dial.TimedConn{Conn: a.socket, Watch: &a.watch}
		if c.over {
			a.watch.Start(time.Millisecond)
			testutil.Until(t, "the attempt is over", func() bool { a.watch.Tick(); return a.watch.Over() })
		}
		if c.stopped {
			stop()
		}
		a.hangUp()
		got := testutil.Receive(t, ended, "the end of the connection")
		if reset := c.over || c.stopped; errors.Is(got, syscall.ECONNRESET) != reset || errors.Is(got, io.EOF) == reset {
			t.Errorf("%s: the server sees %v, want a reset: %t", c.name, got, reset)
		}
		stop()
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// lateError is an error for time that has run out.
type lateError string

func (e lateError) Error() string   { return string(e) }
func (e lateError) Timeout() bool   { return true }
func (e lateError) Temporary() bool { return true }

const (
	errLateHeader    lateError = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
	errLateBody      lateError = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
	errLateHandshake lateError = "net/http: TLS handshake timeout"
)

// errLongHeader ends the reading of a header; net/http then reports the error.
var errLongHeader = errors.New("header too long")

// direct asks without net/http: one connection, one write, and one answer. If the answer is not
// plain and final, direct hands the connection over to net/http, together with what it has read.
// So redirects, and the errors for invalid answers, are those of net/http.
func (g *httpGet) direct(ctx context.Context, p *plan, x *exchange) (action.Outcome, error) {
	h := g.probe.HTTPGet
	x.host, x.port = cmp.Or(h.Host, g.target.Host), h.Port.Number
	if err := x.dial(ctx); err != nil {
		return g.unanswered(ctx, x.watch, err)
	}
	if p.secure {
		if over, err := g.secure(ctx, x); err != nil {
			return g.unanswered(ctx, x.watch, err)
		} else if over {
			return g.handOver(ctx, x)
		}
	}
	x.request = p.request(x.request[:0], x.host, x.port)
	if _, err := x.conn.Write(x.request); err != nil {
		return g.unanswered(ctx, x.watch, err)
	}
	response, err := x.hear() //nolint:bodyclose // a close would read to the end, which may never come
	switch {
	case err == nil && final(response):
	case x.err != nil && (len(x.heard) == 0 || dial.RanOut(x.err)):
		return g.unanswered(ctx, x.watch, x.err)
	case ctx.Err() != nil:
		return action.CutShort(ctx)
	default:
		return g.handOver(ctx, x)
	}
	body, err := x.readBody(response.Body)
	switch {
	case err != nil && ctx.Err() != nil:
		return action.CutShort(ctx)
	case err != nil:
		return bodiless(err)
	}
	return judge(response.StatusCode, body), nil
}

// handOver lets net/http go on.
func (g *httpGet) handOver(ctx context.Context, x *exchange) (action.Outcome, error) {
	begun := x.handOver()
	return g.library(ctx, x.watch, begun, nil)
}

// bodiless returns the outcome of an answer whose body could not be read. For the kubelet a
// body that breaks off is no answer, neither good nor bad (rule 9.13).
func bodiless(err error) (action.Outcome, error) {
	if dial.RanOut(err) {
		err = errLateBody
	}
	return action.Outcome{Reason: action.Classify(err)}, fmt.Errorf("read body: %w", err)
}

// final reports whether a response is final: neither a redirect, nor an informational response,
// nor a switch to another protocol.
func final(r *http.Response) bool {
	switch r.StatusCode {
	case 301, 302, 303, 307, 308:
		return r.Header.Get("Location") == ""
	}
	return r.StatusCode >= 200
}

// exchange is one request and its answer, over a connection of its own.
type exchange struct {
	host string   // to connect to, and for TLS
	port int      // to connect to
	conn net.Conn // raw, or TLS over raw; nil without a connection
	stop func()   // ends the effect of ctx on the connection

	raw   dial.TimedConn  // the connection
	watch *dial.Stopwatch // its own, or handed over
	own   dial.Stopwatch

	expires int64 // of the certificates that the server has shown: see action.Outcome.CertExpires

	request []byte

	heard  []byte // the bytes up to the end of the header, and a few more
	header bool   // the header is being read
	err    error  // the first error of a read
	reader *bufio.Reader
	body   [action.MaxOutput]byte
}

// exchanges keeps buffers, 14 KiB each, for as many attempts as run at a time.
var exchanges = sync.Pool{New: func() any {
	x := new(exchange)
	x.reader = bufio.NewReaderSize(x, 4<<10)
	return x
}}

// dial connects.
func (x *exchange) dial(ctx context.Context) (err error) {
	var raw net.Conn
	if to, ok := dial.Literal(x.host, x.port); ok {
		raw, err = dial.IP(ctx, to, x.watch, time.Time{})
	} else {
		raw, err = dial.Name(ctx, dial.NewDialer(), dial.HostPort(x.host, x.port), x.watch, false)
	}
	if err != nil {
		return err
	}
	x.raw = dial.TimedConn{Conn: raw, Watch: x.watch}
	x.conn = &x.raw
	x.stop = dial.CutBy(ctx, &x.raw)
	return nil
}

// hear reads the header of a response.
func (x *exchange) hear() (*http.Response, error) {
	x.header = true
	x.reader.Reset(x)
	response, err := http.ReadResponse(x.reader, nil)
	x.header = false
	return response, err
}

// Read reads from the connection. It bounds the size of the header, and keeps all of it in heard.
func (x *exchange) Read(p []byte) (int, error) {
	if x.header {
		p = p[:min(len(p), maxResponseHeader-len(x.heard))]
		if len(p) == 0 {
			return 0, errLongHeader
		}
	}
	n, err := x.conn.Read(p)
	if x.header {
		x.heard = append(x.heard, p[:n]...)
		x.err = err
	}
	return n, err
}

// readBody returns the first 10 KiB of a body, and does not wait for the rest (rule 9.13).
func (x *exchange) readBody(body io.Reader) (string, error) {
	for n := 0; ; {
		if n == len(x.body) {
			return string(x.body[:]), nil
		}
		got, err := body.Read(x.body[n:])
		n += got
		switch {
		case errors.Is(err, io.EOF):
			return string(x.body[:n]), nil
		case err != nil:
			return "", err
		}
	}
}

// handOver gives the connection away, with a copy of what was read: the new owner may still read
// the copy when x serves another attempt.
func (x *exchange) handOver() *handed {
	x.stop()
	x.watch = x.watch.Clone()
	h := &handed{conn: x.conn, raw: &dial.TimedConn{Conn: x.raw.Conn, Watch: x.watch}, err: x.err}
	if client, ok := h.conn.(*tls.Conn); ok {
		client.NetConn().(*secured).Conn.Conn = h.raw //nolint:forcetypeassert // see secure
	} else {
		h.conn = h.raw
	}
	if len(x.heard) > 0 {
		h.heard = append([]byte(nil), x.heard...)
	}
	x.conn = nil
	return h
}

// close closes the connection, and does not wait for the peer: see LetGo.
func (x *exchange) close() {
	if x.conn == nil {
		return
	}
	x.stop()
	_ = x.raw.SetLinger(-1)
	_ = x.conn.Close()
	x.conn = nil
}

// done ends the exchange.
func (x *exchange) done() {
	x.close()
	if cap(x.heard) > 8<<10 {
		x.heard = nil
	}
	x.raw = dial.TimedConn{}
	x.stop, x.err, x.watch, x.heard, x.expires = nil, nil, nil, x.heard[:0], 0
	x.reader.Reset(nil)
	exchanges.Put(x)
}

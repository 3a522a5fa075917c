// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// ending says how a connection ended.
type ending struct {
	how     how
	outcome action.Outcome // of answered
	err     error          // of unconnected
}

type how int

const (
	unconnected how = iota // no connection was made
	answered               // the call has an outcome
	sentAway               // the server did not look at the request
	restart                // the request was sent too early
)

// errNoALPN refuses a TLS server that has not agreed to HTTP/2, as grpc-go does.
var errNoALPN = errors.New("the server has not agreed to HTTP/2")

// connection makes one connection and asks over it, until the end of the attempt at the latest.
// The connection must be ready within the time of a try to connect, given the pause that would
// follow a failure.
func (a *attempt) connection(pause time.Duration) ending {
	var ready time.Time
	if longest := max(minConnect, pause); longest < a.watch.Left() {
		ready = time.Now().Add(longest)
	}
	socket, err := a.dial(ready)
	if err != nil {
		a.hear(err)
		return ending{err: err}
	}
	return a.talk(socket, ready)
}

// talk asks over a connection, which must be ready by the given time, unless that is zero, and
// closes the connection.
func (a *attempt) talk(socket net.Conn, ready time.Time) ending {
	a.socket, a.timed = socket, dial.TimedConn{Conn: socket, Watch: &a.watch}
	defer a.hangUp()
	if !ready.IsZero() {
		_ = a.timed.SetDeadline(ready)
	}

	// A done ctx ends whatever is going on. hangUp waits for that.
	a.cutting.Add(1)
	stop := context.AfterFunc(a.ctx, a.cut)
	defer func() {
		if stop() {
			a.cutting.Done()
		}
		a.cutting.Wait()
	}()

	a.wire = heardConn{Conn: &a.timed, attempt: a}
	var conn net.Conn = &a.wire
	if a.tls != nil {
		secure := tls.Client(conn, a.tls)
		// The socket keeps the deadline.
		err := secure.HandshakeContext(context.Background())
		if refused := action.ShownTo(err); refused != nil {
			return a.refuse(refused, err)
		}
		if err == nil {
			state := secure.ConnectionState()
			a.expires = action.Earlier(a.expires, action.EarliestExpiry(state.PeerCertificates))
			if state.NegotiatedProtocol == "" {
				err = errNoALPN
			}
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", action.ErrHandshake, err)
			a.hear(err)
			return ending{err: err}
		}
		defer a.goodbye(secure)
		conn = secure
	}
	opening := a.opening
	if a.careful.Load() {
		opening = opening[:a.preface]
	}
	ahead := len(opening) > a.preface
	// If a write fails, a read will say why.
	_, err := conn.Write(opening)

	s := sights.Get().(*sight) //nolint:forcetypeassert // New returns no other type
	defer s.release()
	if ahead && err == nil {
		if status, ok := s.glance(conn); ok {
			return ending{how: answered, outcome: serving(status)}
		}
		if s.state > awaitSettings && dial.RanOut(s.err) && !a.watch.Over() {
			s.err = nil // only the time of the try ran out, and the try has succeeded
		}
	}
	end := newCall(a, conn, s, ahead).run()
	if a.guarded && end.how == unconnected {
		a.hear(end.err) // over TLS 1.3, a server refuses a client's certificate only now
	}
	return end
}

// dial connects, to an IP address by hand if possible, because a net.Dialer costs more than the
// question.
func (a *attempt) dial(until time.Time) (net.Conn, error) {
	if a.literal.IsValid() {
		return dial.IP(a.ctx, a.literal, &a.watch, until)
	}
	if path, isSocket := config.SocketPath(a.address); isSocket {
		return dial.Unix(a.ctx, path, &a.watch, until)
	}
	ctx := a.ctx
	if !until.IsZero() {
		limited, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = limited
	}
	conn, err := dial.Name(ctx, a.dialer, a.address, &a.watch, true)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(dial.LingerSeconds)
	}
	return conn, err
}

// cut ends what is going on over the connection.
func (a *attempt) cut() {
	defer a.cutting.Done()
	_ = a.timed.SetDeadline(dial.Past)
}

// settle lets the connection be used until the attempt ends, unless it has been cut.
func (a *attempt) settle() {
	_ = a.timed.SetDeadline(time.Time{})
	if a.ctx.Err() != nil {
		_ = a.timed.SetDeadline(dial.Past)
	}
}

// hear records what went wrong on the way to a connection. The end of the attempt is not such an
// error: it only says that the target does not answer.
func (a *attempt) hear(err error) {
	if !a.ready && (!dial.RanOut(err) || !a.watch.Over()) {
		a.heard = err
	}
}

// hangUp closes the connection. After the deadline or a stop, hangUp does not wait for the peer,
// although the socket lingers.
func (a *attempt) hangUp() {
	if a.watch.Over() || a.ctx.Err() != nil {
		_ = a.timed.SetLinger(0)
	}
	_ = a.socket.Close()
}

// goodbye ends TLS gracefully, if there is time.
func (a *attempt) goodbye(secure *tls.Conn) {
	if !a.watch.Over() {
		_ = secure.CloseWrite()
	}
}

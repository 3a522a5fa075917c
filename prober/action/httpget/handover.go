// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// handed is a connection on which an attempt began without net/http, and on which net/http goes
// on.
type handed struct {
	conn net.Conn        // raw, or TLS over raw
	raw  *dial.TimedConn // the connection itself
	// heard is the beginning of an answer, and err the error that ended it; with neither, no
	// request has been sent yet.
	heard []byte
	err   error
}

// enter makes c responsible for the connection, and makes a transport use it as its first
// connection.
func (h *handed) enter(c *dial.Conns, transport *http.Transport) {
	first := h.conn
	client, encrypted := h.conn.(*tls.Conn)
	if encrypted {
		c.Adopt(&client.NetConn().(*secured).Conn) //nolint:forcetypeassert // see handshake
	} else {
		made := &dial.Conn{Conn: h.raw}
		c.Adopt(made)
		first = made
	}
	if len(h.heard) > 0 || h.err != nil {
		first = &resumed{Conn: first, heard: h.heard, err: h.err, asked: make(chan struct{})}
	}
	take := func() (taken net.Conn) {
		taken, first = first, nil
		return taken
	}
	if !encrypted {
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if taken := take(); taken != nil {
				return taken, nil
			}
			return c.Dial(ctx, network, address)
		}
		return
	}
	http2 := transport.Protocols.HTTP2()
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if taken := take(); taken != nil {
			return taken, nil
		}
		return dialTLS(ctx, c, network, address, transport.TLSClientConfig, http2)
	}
}

// dialTLS connects for a redirect, like a transport without DialTLSContext.
func dialTLS(ctx context.Context, c *dial.Conns, network, address string, like *tls.Config, http2 bool) (net.Conn, error) {
	raw, err := c.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, tlsHandshakeTimeout, errLateHandshake)
	defer cancel()
	config := newTLSConfig(host, http2)
	config.VerifyConnection = like.VerifyConnection
	client := tls.Client(raw, config)
	if err := client.HandshakeContext(limited); err != nil {
		_ = raw.Close()
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, err
	}
	return client, nil
}

// resumed is an HTTP/1 connection on which the request has been sent and the answer has begun. A
// write, which repeats the request, goes nowhere. After that write, reads begin with what has
// been heard.
type resumed struct {
	net.Conn
	heard []byte
	err   error

	once  sync.Once
	asked chan struct{} // closed when the request is written, or the connection closed
}

func (r *resumed) Write(p []byte) (int, error) {
	r.once.Do(func() { close(r.asked) })
	return len(p), nil
}

func (r *resumed) Read(p []byte) (int, error) {
	<-r.asked
	if len(r.heard) > 0 {
		n := copy(p, r.heard)
		r.heard = r.heard[n:]
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.Conn.Read(p)
}

func (r *resumed) Close() error {
	r.once.Do(func() { close(r.asked) })
	return r.Conn.Close()
}

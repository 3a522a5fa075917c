// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"fmt"
	"net"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// grpc-go tries to connect until the deadline, and then reports only that the deadline has
// passed. This file finds out why there was no connection: from the dial, from the handshake,
// and from the connection itself until it is ready.

// heardConn is a connection that, until it is ready, notes if it breaks or if its peer does not
// begin like an HTTP/2 server.
type heardConn struct {
	net.Conn
	attempt *attempt
	begun   bool // the peer has said something
	said    bool // an error has been noted
}

// Read reads and notes errors. There is only one reader at a time.
func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.begun {
		c.begun = true
		if c.attempt.tls == nil {
			c.note(firstByte(p[0]))
		}
	}
	if err == nil {
		return n, nil
	}
	if action.Classify(err) == action.ConnectionReset {
		c.note(err)
	}
	return n, err
}

// note keeps the first error of this connection, from which the others follow.
func (c *heardConn) note(err error) {
	if err != nil && !c.said {
		c.said = true
		c.attempt.hear(err)
	}
}

// firstByte returns an error if a server does not begin with HTTP/2: a small SETTINGS frame, the
// length of which begins with a 0 byte. A TLS server answers plaintext with an alert.
func firstByte(b byte) error {
	const alert = 21
	switch b {
	case 0:
		return nil
	case alert:
		return fmt.Errorf("%w: the server wants TLS", action.ErrHandshake)
	}
	return action.ErrNotHTTP2
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"fmt"
	"net"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// grpc goes on connecting until the deadline, and then there is no more to learn than
// that it has passed. Why a connection did not come about is heard here: from the
// dial, from the handshake, and from the connection itself until it is ready.

// heardConn is a connection that is listened to until it is ready: it notes that it
// broke, or that its peer began with something that no HTTP/2 server begins with.
type heardConn struct {
	net.Conn
	attempt *attempt
	begun   bool // the peer has said something
	said    bool // there is nothing more to note
}

// Read reads and notes. As with any connection there is one reader at a time.
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

// note keeps the first that this connection has to say: the rest follows from it.
func (c *heardConn) note(err error) {
	if err != nil && !c.said {
		c.said = true
		c.attempt.hear(err)
	}
}

// firstByte judges how a server begins. HTTP/2 begins with a small SETTINGS frame, the
// first byte of whose length is 0; TLS answers what is not TLS with an alert.
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

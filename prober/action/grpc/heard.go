// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

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
	begun   bool  // the peer has said something
	said    bool  // there is nothing more to note
	broken  error // of a write
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
	if c.broken != nil && errors.Is(err, io.EOF) {
		err = c.broken
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

// Write writes. Of a reset the system tells only once, and who writes may be the one
// to hear it: then it is kept for the reader.
func (c *heardConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	op, _ := errors.AsType[*net.OpError](err)
	call, ok := errors.AsType[*os.SyscallError](err)
	if op != nil && ok && c.broken == nil {
		c.broken = &net.OpError{Op: "read", Net: op.Net, Source: op.Source, Addr: op.Addr, Err: os.NewSyscallError("read", call.Err)}
	}
	return n, err
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

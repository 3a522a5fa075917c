// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package action

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// grpc goes on connecting until the deadline, and then there is no more to learn than
// that it has passed. Why a connection did not come about is heard here: from the
// dial, from the handshake, and from the connection itself until it is ready.

// lastWord is the last error on the way to a connection.
type lastWord struct {
	mu  sync.Mutex
	err error
}

func (w *lastWord) set(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *lastWord) get() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// heardCredentials note why a handshake failed.
type heardCredentials struct {
	credentials.TransportCredentials
	word *lastWord
}

// ClientHandshake does what the embedded one does.
func (c heardCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		c.word.set(fmt.Errorf("%w: %w", errHandshake, err))
	}
	return conn, info, err
}

// Clone returns a copy that notes to the same place.
func (c heardCredentials) Clone() credentials.TransportCredentials {
	return heardCredentials{c.TransportCredentials.Clone(), c.word}
}

// heardConn notes that a connection broke, or that its peer began with something that
// no HTTP/2 server begins with.
type heardConn struct {
	net.Conn
	word      *lastWord
	encrypted bool
	begun     bool
	said      bool
}

// Read reads and notes. As with any connection there is one reader at a time.
func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.begun {
		c.begun = true
		if !c.encrypted {
			c.note(firstByte(p[0]))
		}
	}
	if err != nil && classify(err) == ConnectionReset {
		c.note(err)
	}
	return n, err
}

// note keeps the first that this connection has to say: the rest follows from it.
func (c *heardConn) note(err error) {
	if err != nil && !c.said {
		c.said = true
		c.word.set(err)
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
		return fmt.Errorf("%w: the server wants TLS", errHandshake)
	}
	return errNotHTTP2
}

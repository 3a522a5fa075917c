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
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// cheap are the key exchanges that are offered first: of P-256, which every server of
// TLS 1.3 has (RFC 8446, 9.1), a new key costs a third of one of X25519, and a hybrid one
// more than the rest of the handshake. A probe keeps no secret that would have to last.
var cheap = []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}

// What is known of the key exchanges of a probe's server.
const (
	untried   = iota // nothing yet
	takesFew         // the cheap ones do
	wantsMore        // they do not
)

// secure makes the connection of x one of TLS. It says whether the server has chosen
// to speak HTTP/2.
//
// A server that refuses may do so because it wants another key exchange: the probe
// asks again, over another connection, and from then on offers all there are. Not every
// server says that it refuses. So as long as no handshake has come to its end, one that
// breaks in any way is begun again; the end that this one comes to counts.
func (g *httpGet) secure(ctx context.Context, x *exchange, deadline time.Time) (h2 bool, err error) {
	known := g.curves.Load()
	protocol, err := g.handshake(ctx, x, deadline, known == wantsMore)
	switch {
	case known == wantsMore:
	case err == nil:
		g.curves.Store(takesFew)
	case refused(err), known == untried && broken(ctx, err, deadline):
		if refused(err) {
			g.curves.Store(wantsMore)
		}
		x.close()
		if err := x.dial(ctx, deadline); err != nil {
			return false, err
		}
		if protocol, err = g.handshake(ctx, x, deadline, true); err == nil {
			g.curves.Store(wantsMore)
		}
	}
	return protocol == "h2", err
}

// refused says whether a server has found nothing that both sides can do.
func refused(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && (op.Err.Error() == "tls: handshake failure" || op.Err.Error() == "tls: insufficient security level")
}

// broken says whether a handshake with a server that speaks TLS, as far as can be told,
// has come to nothing before its time was over.
func broken(ctx context.Context, err error, deadline time.Time) bool {
	_, other := errors.AsType[tls.RecordHeaderError](err)
	return !other && !errors.Is(err, errLateHandshake) && !outOfTime(err, deadline) && ctx.Err() == nil
}

func (g *httpGet) handshake(ctx context.Context, x *exchange, deadline time.Time, all bool) (protocol string, err error) {
	config := newTLSConfig(x.host, g.http2)
	if !all {
		config.CurvePreferences = cheap
	}
	client := tls.Client(&secured{conn{Conn: x.raw}}, config)
	limit := time.Now().Add(tlsHandshakeTimeout)
	if limit.Before(deadline) {
		_ = x.raw.SetDeadline(limit)
	}
	err = client.HandshakeContext(context.Background()) //nolint:contextcheck // ctx ends it through the connection's deadline, which needs no goroutine
	if limit.Before(deadline) {
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(deadline) {
			err = errLateHandshake
		}
		_ = x.raw.SetDeadline(deadline)
		if ctx.Err() != nil { // what it did to the deadline is undone
			return "", ctx.Err()
		}
	}
	if err != nil {
		return "", err
	}
	x.conn = client
	return client.ConnectionState().NegotiatedProtocol, nil
}

// newTLSConfig returns the configuration of one connection. Nothing is verified: a
// probe asks who is well, not who it is.
func newTLSConfig(host string, http2 bool) *tls.Config {
	config := &tls.Config{ServerName: host, InsecureSkipVerify: true}
	if http2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	return config
}

// secured is a connection that TLS is spoken over. The goodbye of TLS does not wait
// for a server that does not read.
type secured struct{ conn }

// SetWriteDeadline is called by TLS before its goodbye only.
func (s *secured) SetWriteDeadline(t time.Time) error {
	if grace := time.Now().Add(closeGrace); grace.Before(t) {
		t = grace
	}
	return s.conn.SetWriteDeadline(t)
}

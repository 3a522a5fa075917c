// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// secure starts TLS on the connection of x. It returns whether the server has chosen HTTP/2.
func (g *httpGet) secure(ctx context.Context, x *exchange) (h2 bool, err error) {
	client := tls.Client(&secured{dial.Conn{Conn: &x.raw}}, newTLSConfig(x.host, g.http2))
	limited := x.watch.Left() > tlsHandshakeTimeout
	if limited {
		_ = x.raw.SetDeadline(time.Now().Add(tlsHandshakeTimeout))
	}
	err = client.HandshakeContext(context.Background()) //nolint:contextcheck // ctx ends it through the connection's deadline, which needs no goroutine
	if limited {
		if dial.RanOut(err) && !x.watch.Over() {
			err = errLateHandshake
		}
		_ = x.raw.SetDeadline(time.Time{})
		if ctx.Err() != nil { // SetDeadline has undone the cut
			return false, ctx.Err()
		}
	}
	if err != nil {
		return false, err
	}
	x.conn = client
	state := client.ConnectionState()
	x.expires = action.EarliestExpiry(state.PeerCertificates)
	return state.NegotiatedProtocol == "h2", nil
}

// unverified returns the configuration of a probe without tlsConfig, for net/http: a probe asks
// who is well, not who it is. It notes in seen what servers show.
func unverified(seen *expiry) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: seen.note}
}

// newTLSConfig returns the configuration of one connection, as unverified does for net/http.
func newTLSConfig(host string, http2 bool) *tls.Config {
	config := &tls.Config{ServerName: host, InsecureSkipVerify: true}
	if http2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	return config
}

// secured is a connection below TLS. The close of TLS does not wait for a server that does not
// read.
type secured struct{ dial.Conn }

// SetWriteDeadline is called by TLS only before its close.
func (s *secured) SetWriteDeadline(t time.Time) error {
	if grace := time.Now().Add(dial.CloseGrace); grace.Before(t) {
		t = grace
	}
	return s.Conn.SetWriteDeadline(t)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// guarded is what the attempts of a probe with a tlsConfig share.
type guarded struct {
	*check
	files dial.Credentials
}

// newGuarded returns the action of a probe of host with a tlsConfig.
func newGuarded(g *check, c *config.TLS, host string) action.Func {
	g.tls.InsecureSkipVerify = c.InsecureSkipVerify
	g.tls.ServerName = cmp.Or(dial.ServerName(c, host), g.tls.ServerName)
	g.tls.MinVersion = c.Version()
	s := &guarded{g, dial.CredentialsOf(c)}
	return s.attempt
}

// attempt asks once, if the files can be read.
func (g *guarded) attempt(ctx context.Context) (action.Outcome, error) {
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	a := &attempt{check: g.check, ctx: ctx, tls: g.tls.Clone(), guarded: true}
	a.watch.Start(g.timeout)
	loaded, err := g.files.Load(ctx, &a.watch)
	if err != nil {
		return dial.LocalFile(ctx, err)
	}
	loaded.Into(a.tls)
	return loaded.Judge(a.judged(ctx))
}

// refuse ends the call, because the certificates that a server has shown do not verify. Unlike
// after other troubles with a connection, another try would end in the same way.
func (a *attempt) refuse(shown []*x509.Certificate, err error) ending {
	a.expires = action.Earlier(a.expires, action.EarliestExpiry(shown))
	text := fmt.Sprintf("error: failed to connect service %q: %v", a.address, action.Unverified(err))
	return ending{how: answered, outcome: action.Outcome{Reason: action.TLSVerify, Output: action.Clip(text)}}
}

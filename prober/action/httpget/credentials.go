// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/credential"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// guarded is what the attempts of a probe with a tlsConfig, or with headers from files, share.
// net/http makes these attempts.
type guarded struct {
	*httpGet
	files dial.Credentials
}

// isGuarded reports whether the probe is guarded.
func isGuarded(h *config.HTTPGet) bool {
	return h.TLS != nil || slices.ContainsFunc(h.Headers, fromFile)
}

// fromFile reports whether the value of a header comes from a file.
func fromFile(h config.Header) bool { return h.ValueFile != "" }

// newGuarded returns the action of a guarded probe.
func newGuarded(g *httpGet) action.Func {
	s := &guarded{httpGet: g, files: dial.CredentialsOf(g.probe.HTTPGet.TLS)}
	for _, h := range g.probe.HTTPGet.Headers {
		if fromFile(h) {
			s.files.Tokens = append(s.files.Tokens, credential.NewToken(h.ValueFile))
		}
	}
	return s.attempt
}

// attempt asks once, if the files can be read.
func (g *guarded) attempt(ctx context.Context) (action.Outcome, error) {
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	watch := dial.NewStopwatch(g.probe.Timeout)
	loaded, err := g.files.Load(ctx, watch)
	if err != nil {
		return dial.LocalFile(ctx, err)
	}
	return loaded.Judge(watch.Judge(g.library(ctx, watch, nil, loaded)))
}

// verified returns the TLS configuration of an attempt of a guarded probe that asks host, and notes in
// seen what servers show.
func verified(c *config.TLS, host string, loaded *dial.Loaded, seen *expiry) *tls.Config {
	t := &tls.Config{ServerName: dial.ServerName(c, host), InsecureSkipVerify: c.InsecureSkipVerify, MinVersion: c.Version()}
	loaded.Into(t)
	t.VerifyConnection = seen.note
	return t
}

// withTokens returns h with the values of headers that were read from files.
func withTokens(h *config.HTTPGet, loaded *dial.Loaded) *config.HTTPGet {
	if len(loaded.Tokens) == 0 {
		return h
	}
	full := *h
	full.Headers = slices.Clone(h.Headers)
	next := 0
	for i := range full.Headers {
		if header := &full.Headers[i]; fromFile(*header) {
			header.Value = header.Prefix + loaded.Tokens[next]
			next++
		}
	}
	return &full
}

// followTo takes the headers from files out of a request that leads to another scheme or port than
// the first one: whoever answers there is not known to be the target. Like curl, and unlike
// net/http, which looks at the host alone.
func followTo(next *http.Request, first *url.URL, headers []config.Header) {
	if next.URL.Scheme == first.Scheme && portOf(next.URL) == portOf(first) {
		return
	}
	for _, h := range headers {
		if fromFile(h) {
			next.Header.Del(h.Name)
		}
	}
}

// portOf returns the port that a URL leads to.
func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	default:
		return "80"
	}
}

// expiry is when the first of the certificates that an attempt has seen expires: see
// action.Outcome.CertExpires. net/http may note it from several goroutines.
type expiry struct{ at atomic.Int64 }

// note notes the certificates of a connection. It verifies nothing.
func (e *expiry) note(state tls.ConnectionState) error {
	e.add(action.EarliestExpiry(state.PeerCertificates))
	return nil
}

func (e *expiry) add(at int64) {
	for {
		was := e.at.Load()
		if e.at.CompareAndSwap(was, action.Earlier(was, at)) {
			return
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/credential"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Credentials are the files that the attempts of a probe need.
type Credentials struct {
	CA     *credential.CA   // nil: the server is not verified
	Pair   *credential.Pair // nil: none
	Tokens []*credential.Token
}

// CredentialsOf returns the files of a tlsConfig, which may be nil.
func CredentialsOf(c *config.TLS) (files Credentials) {
	if c == nil {
		return files
	}
	if !c.InsecureSkipVerify {
		files.CA = credential.NewCA(c.CAFile)
	}
	if c.CertFile != "" {
		files.Pair = credential.NewPair(c.CertFile, c.KeyFile)
	}
	return files
}

// ServerName returns the name that the certificate of a verified server must have, if the name is not
// the host as it stands; empty otherwise. An address has no zone in a certificate.
func ServerName(c *config.TLS, host string) string {
	if ip, err := netip.ParseAddr(host); c.ServerName == "" && err == nil && ip.Zone() != "" {
		return ip.WithZone("").String()
	}
	return c.ServerName
}

// Loaded is what one attempt has read from its files.
type Loaded struct {
	roots  *x509.CertPool
	pair   *tls.Certificate
	doubt  string // of the pair
	Tokens []string

	took, timeout time.Duration
	asked         atomic.Bool // a server has asked for a client's certificate
}

// Load reads what has changed. It waits for the file system until the end of the attempt. An error
// means that the attempt cannot be made, which is never the target's fault: its outcome is
// LocalFile's.
func (c *Credentials) Load(ctx context.Context, watch *Stopwatch) (l *Loaded, err error) {
	l = &Loaded{timeout: watch.timeout}
	began := time.Now()
	defer func() { l.took = time.Since(began) }()
	ctx, cancel := watch.Context(ctx, false, nil)
	defer cancel()
	if c.CA != nil {
		if l.roots, err = c.CA.Get(ctx); err != nil {
			return l, err
		}
	}
	if c.Pair != nil {
		if l.pair, l.doubt, err = c.Pair.Get(ctx); err != nil {
			return l, err
		}
	}
	for _, token := range c.Tokens {
		text, err := token.Get(ctx)
		if err != nil {
			return l, err
		}
		l.Tokens = append(l.Tokens, text)
	}
	return l, nil
}

// LocalFile returns the outcome of an attempt for which err kept a file from being read.
func LocalFile(ctx context.Context, err error) (action.Outcome, error) {
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	return action.Outcome{Reason: action.LocalFile, Output: action.Clip(err.Error())}, err
}

// Into makes a TLS client verify by what was read, and show the certificate that was read.
func (l *Loaded) Into(c *tls.Config) {
	c.RootCAs = l.roots
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		l.asked.Store(true)
		if l.pair == nil {
			return new(tls.Certificate), nil // which sends none
		}
		// Whatever authorities the server names: its refusal says more than a missing certificate.
		return l.pair, nil
	}
}

// Judge returns the outcome of the attempt that has used l. A failure that may come from the
// agent's own files says nothing about the target: the server has asked for a client certificate that
// is old, and may have refused it, or the reading has used up the time. A server that has not asked
// fails for reasons of its own.
func (l *Loaded) Judge(made action.Outcome, err error) (action.Outcome, error) {
	switch {
	case err != nil:
		return made, err
	case made.Success && l.doubt != "":
		made.Warning = true
		made.Output = action.Clip(l.doubt + "; " + made.Output)
		return made, nil
	case made.Success:
		return made, nil
	}
	asked := l.asked.Load()
	if asked && hungUp(&made) {
		// The server hangs up on a stranger before all is written, so that its alert can be lost.
		made.Reason = action.TLS
		made.Output = action.Clip(made.Output + ": the server had asked for a client certificate")
	}
	ours := ""
	switch made.Reason {
	case action.Timeout:
		if l.took > max(20*time.Millisecond, l.timeout/5) {
			ours = fmt.Sprintf("the agent took %v to read its files", l.took.Round(time.Millisecond))
		}
	case action.ConnectionRefused, action.NoRoute, action.DNS, action.TLSVerify:
		// Before the server has seen the certificate.
	case action.GRPCNotServing:
		// The service itself has answered.
	default:
		if asked {
			ours = l.doubt
		}
	}
	if ours == "" {
		return made, nil
	}
	err = fmt.Errorf("%s; %s", ours, made.Output)
	return action.Outcome{Reason: action.LocalFile, Output: action.Clip(err.Error()), CertExpires: made.CertExpires}, err
}

// hungUp reports whether the server hung up without an answer. The second text is net/http's, which
// keeps the cause to itself.
func hungUp(made *action.Outcome) bool {
	return made.Reason == action.ConnectionReset || strings.HasSuffix(made.Output, "http2: client conn could not be established")
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package grpc asks a target's grpc.health.v1.Health, as the kubelet does.
//
// The kubelet asks through grpc-go. For two frames each way that library takes many times the
// CPU and the memory of the question, so this package asks by hand. Success, failure and reason
// are those of grpc-go, with which the tests compare every answer; the texts are the kubelet's,
// with other words where the kubelet's texts quote the library.
//
// An answer is read in two ways. The first (glance.go) knows only the answer of a healthy server.
// Any other answer goes, from its first byte on, to the second (call.go for the connection,
// stream.go for the answer), which knows what else grpc-go accepts as an answer. Anything that
// neither knows fails the call.
package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// check is what the attempts of a grpc probe share.
type check struct {
	address string
	literal netip.AddrPort // the address, if it can be dialed by hand
	timeout time.Duration
	dialer  *net.Dialer
	tls     *tls.Config // nil in plaintext; a guarded attempt has its own
	question

	// careful is set if the server does not accept a request before its own settings.
	careful atomic.Bool
}

// New returns the action that asks a server's grpc.health.v1.Health.
func New(t *config.Target, p *config.Probe) action.Func {
	g := &check{
		address: Address(t, p),
		timeout: p.Timeout,
		// The linger of NewDialer, set before a socket is connected, costs allocations.
		dialer: &net.Dialer{KeepAlive: -1},
	}
	authority := g.address
	if _, isSocket := config.SocketPath(t.Host); isSocket {
		authority = socketAuthority
	} else {
		g.literal, _ = dial.Literal(t.Host, p.GRPC.Port)
	}
	encrypted := p.GRPC.Mode == "TLS"
	g.question = newQuestion(authority, encrypted, p.GRPC.Service, p.Timeout)
	if encrypted {
		g.tls = tlsFor(g.authority)
	}
	g.careful.Store(!g.ahead)
	if c := p.GRPC.TLS; c != nil {
		return newGuarded(g, c, t.Host)
	}
	return g.attempt
}

// socketAuthority is what grpc-go calls the server behind a Unix socket.
const socketAuthority = "localhost"

// tlsFor returns the TLS configuration of an HTTP/2 client: without verification, as in httpGet
// over HTTPS, and with what RFC 9113 permits.
func tlsFor(authority string) *tls.Config {
	host, _, err := net.SplitHostPort(authority)
	if err != nil {
		host = authority
	}
	return &tls.Config{
		InsecureSkipVerify: true,
		ServerName:         host,
		NextProtos:         []string{"h2"},
		MinVersion:         tls.VersionTLS12,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// grpc-go's back-off between two tries to connect, and how long a try may take at least.
const (
	firstPause = time.Second
	pauseGrows = 1.6
	pauseVary  = 0.2
	maxPause   = 2 * time.Minute
	minConnect = 20 * time.Second
)

// pauseAfter returns how long to wait after a failed try that followed that many failures.
func pauseAfter(failures int) time.Duration {
	if failures == 0 {
		return firstPause
	}
	pause := float64(firstPause)
	for range failures {
		pause = min(pause*pauseGrows, float64(maxPause))
	}
	return time.Duration(pause * (1 + pauseVary*(2*rand.Float64()-1)))
}

// freeRedials is how many connections may follow without a pause if the server did not look at
// the request. grpc-go has no such bound.
const freeRedials = 3

// attempt is one attempt.
type attempt struct {
	*check
	ctx   context.Context
	watch dial.Stopwatch

	tls     *tls.Config // nil in plaintext
	guarded bool        // tls verifies
	expires int64       // of the certificates that the server has shown: see action.Outcome.CertExpires

	// socket is the present connection; timed and wire wrap it.
	socket  net.Conn
	timed   dial.TimedConn
	wire    heardConn
	cutting sync.WaitGroup

	// heard is the last thing that went wrong on the way to a connection.
	heard error

	// ready says that there has been a connection: later errors fail the call, not the
	// connect.
	ready bool

	// again says that the request has been repeated, which happens at most once.
	again bool
}

// attempt connects and asks once, both within the timeout. It tries to connect as long as there
// is time (rule 12.1).
func (g *check) attempt(ctx context.Context) (action.Outcome, error) {
	a := &attempt{check: g, ctx: ctx, tls: g.tls}
	a.watch.Start(g.timeout)
	return a.judged(ctx)
}

// judged returns the outcome of the attempt, with what the attempt has seen.
func (a *attempt) judged(ctx context.Context) (action.Outcome, error) {
	made, err := a.outcome(ctx)
	made.CertExpires = a.expires
	return a.watch.Judge(made, err)
}

// outcome returns the outcome of the attempt.
func (a *attempt) outcome(ctx context.Context) (action.Outcome, error) {
	for failures, redials := 0, 0; ; {
		pause := pauseAfter(failures)
		end := a.connection(pause)
		if ctx.Err() != nil {
			return action.CutShort(ctx)
		}
		switch end.how {
		case answered:
			return end.outcome, nil
		case restart:
			continue
		case sentAway:
			failures = 0
			if redials++; redials <= freeRedials {
				continue
			}
		case unconnected:
			if a.ready && !a.watch.Over() {
				// The connection was ready once, and the next try failed: the call fails,
				// because it does not wait for a connection.
				if action.Exhausted(end.err) || errors.Is(end.err, action.ErrLocalFile) {
					return action.Failed(ctx, end.err, end.err.Error())
				}
				return failedf("connect again: %v", end.err), nil
			}
			failures++
		}
		if !a.watch.Sleep(ctx, pause) {
			break
		}
	}
	if ctx.Err() != nil {
		return action.CutShort(ctx)
	}
	if a.ready {
		return a.late(), nil
	}
	return a.unconnected(ctx)
}

// unconnected returns the outcome of a connect that ran into its deadline. The kubelet's text says
// only that; the reason is that of the last try.
func (a *attempt) unconnected(ctx context.Context) (action.Outcome, error) {
	text := fmt.Sprintf("timeout: failed to connect service %q within %v: %v", a.address, a.timeout, context.DeadlineExceeded)
	if a.heard == nil {
		return action.Outcome{Reason: action.Timeout, Output: action.Clip(text)}, nil
	}
	if a.guarded {
		text += ": " + a.heard.Error()
	}
	return action.Failed(ctx, a.heard, text)
}

// Address returns the host and port, or the socket, that a probe connects to.
func Address(t *config.Target, p *config.Probe) string {
	if _, isSocket := config.SocketPath(t.Host); isSocket {
		return t.Host
	}
	return dial.HostPort(t.Host, p.GRPC.Port)
}

// Files returns how many files an attempt has open at most.
func Files(t *config.Target, _ *config.Probe) int { return dial.Files(t.Host) }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"cmp"
	"context"
	"net"

	"github.com/prober-exporter/prober_exporter/config"
)

// newTCPSocket returns the action that connects: nothing is sent or read (rule 10.1).
func newTCPSocket(t *config.Target, p *config.Probe) Func {
	host, port := cmp.Or(p.TCPSocket.Host, t.Host), p.TCPSocket.Port.Number
	to, isLiteral := literal(host, port)
	return func(ctx context.Context) (Outcome, error) {
		if ctx.Err() != nil {
			return cutShort(ctx)
		}
		watch := newStopwatch(p.Timeout)
		defer watch.free()
		var err error
		if isLiteral {
			err = knock(ctx, to, watch)
		} else {
			var conn net.Conn
			if conn, err = dialName(ctx, newDialer(), hostPort(host, port), watch, true); err == nil {
				letGo(conn)
			}
		}
		if err != nil {
			return watch.judge(failed(ctx, err, err.Error()))
		}
		// It has connected, and that was the question (rule 10.4).
		return Outcome{Success: true}, nil
	}
}

// tcpAddress returns the host and port that a probe connects to.
func tcpAddress(t *config.Target, p *config.Probe) string {
	return hostPort(cmp.Or(p.TCPSocket.Host, t.Host), p.TCPSocket.Port.Number)
}

// tcpFiles returns how many files an attempt has open at most.
func tcpFiles(t *config.Target, p *config.Probe) int {
	return filesTo(cmp.Or(p.TCPSocket.Host, t.Host))
}

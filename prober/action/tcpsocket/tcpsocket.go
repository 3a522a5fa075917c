// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package tcpsocket connects to a target, as the kubelet does: a connection is success.
package tcpsocket

import (
	"cmp"
	"context"
	"net"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// New returns the action that connects: nothing is sent or read (rule 10.1).
func New(t *config.Target, p *config.Probe) action.Func {
	host, port := cmp.Or(p.TCPSocket.Host, t.Host), p.TCPSocket.Port.Number
	to, isLiteral := dial.Literal(host, port)
	return func(ctx context.Context) (action.Outcome, error) {
		if ctx.Err() != nil {
			return action.CutShort(ctx)
		}
		watch := dial.NewStopwatch(p.Timeout)
		defer watch.Free()
		var err error
		if isLiteral {
			err = dial.Knock(ctx, to, watch)
		} else {
			var conn net.Conn
			if conn, err = dial.Name(ctx, dial.NewDialer(), dial.HostPort(host, port), watch, true); err == nil {
				dial.LetGo(conn)
			}
		}
		if err != nil {
			return watch.Judge(action.Failed(ctx, err, err.Error()))
		}
		// A connection is a success, however its close goes (rule 10.4).
		return action.Outcome{Success: true}, nil
	}
}

// Address returns the host and port that a probe connects to.
func Address(t *config.Target, p *config.Probe) string {
	return dial.HostPort(cmp.Or(p.TCPSocket.Host, t.Host), p.TCPSocket.Port.Number)
}

// Files returns how many files an attempt has open at most.
func Files(t *config.Target, p *config.Probe) int {
	return dial.Files(cmp.Or(p.TCPSocket.Host, t.Host))
}

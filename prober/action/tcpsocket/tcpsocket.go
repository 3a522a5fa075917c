// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package tcpsocket connects to a target, as the kubelet does: a connection is success.
package tcpsocket

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// New returns the action that connects: nothing is sent or read (rule 10.1).
func New(t *config.Target, p *config.Probe) action.Func {
	host, port := hostOf(t, p), p.TCPSocket.Port.Number
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
			err = knock(ctx, host, port, watch)
		}
		if err != nil {
			return watch.Judge(action.Failed(ctx, err, err.Error()))
		}
		// A connection is a success, however its close goes (rule 10.4).
		return action.Outcome{Success: true}, nil
	}
}

// knock connects to a name or a Unix socket, and closes the connection.
func knock(ctx context.Context, host string, port int, watch *dial.Stopwatch) error {
	var conn net.Conn
	var err error
	if path, isSocket := config.SocketPath(host); isSocket {
		conn, err = dial.Unix(ctx, path, watch, time.Time{})
	} else {
		conn, err = dial.Name(ctx, dial.NewDialer(), dial.HostPort(host, port), watch, true)
	}
	if err != nil {
		return err
	}
	dial.LetGo(conn)
	return nil
}

// hostOf returns the host of a probe.
func hostOf(t *config.Target, p *config.Probe) string { return cmp.Or(p.TCPSocket.Host, t.Host) }

// Address returns the host and port, or the socket, that a probe connects to.
func Address(t *config.Target, p *config.Probe) string {
	host := hostOf(t, p)
	if _, isSocket := config.SocketPath(host); isSocket {
		return host
	}
	return dial.HostPort(host, p.TCPSocket.Port.Number)
}

// Files returns how many files an attempt has open at most.
func Files(t *config.Target, p *config.Probe) int { return dial.Files(hostOf(t, p)) }

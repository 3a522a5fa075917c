// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package dial

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// On systems other than Linux probes dial with net.Dialer. Production runs on Linux;
// elsewhere the agent is for development.

// IP connects to an address while the attempt lasts, but no longer than until, unless that is
// zero.
func IP(ctx context.Context, to netip.AddrPort, watch *Stopwatch, until time.Time) (net.Conn, error) {
	if !until.IsZero() {
		limited, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = limited
	}
	return Name(ctx, NewDialer(), to.String(), watch, true)
}

// Knock connects to an address while the attempt lasts, and closes the connection.
func Knock(ctx context.Context, to netip.AddrPort, watch *Stopwatch) error {
	conn, err := IP(ctx, to, watch, time.Time{})
	if err != nil {
		return err
	}
	LetGo(conn)
	return nil
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package action

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// On systems other than Linux probes dial with net.Dialer. Production runs on Linux;
// elsewhere the agent is for development.

// dialIP connects to an address while the attempt lasts, or up to a point in time if that
// is not zero.
func dialIP(ctx context.Context, to netip.AddrPort, watch *stopwatch, until time.Time) (net.Conn, error) {
	if !until.IsZero() {
		limited, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = limited
	}
	return dialName(ctx, newDialer(), to.String(), watch, true)
}

// knock connects to an address while the attempt lasts, and hangs up.
func knock(ctx context.Context, to netip.AddrPort, watch *stopwatch) error {
	conn, err := dialIP(ctx, to, watch, time.Time{})
	if err != nil {
		return err
	}
	letGo(conn)
	return nil
}

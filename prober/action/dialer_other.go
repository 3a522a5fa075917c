// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

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

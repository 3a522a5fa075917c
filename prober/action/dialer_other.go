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

// dialIP connects to an address by the deadline.
func dialIP(ctx context.Context, to netip.AddrPort, deadline time.Time) (net.Conn, error) {
	d := newDialer(0)
	d.Deadline = deadline
	return d.DialContext(ctx, "tcp", to.String())
}

// knock connects to an address by the deadline, and hangs up.
func knock(ctx context.Context, to netip.AddrPort, deadline time.Time) error {
	conn, err := dialIP(ctx, to, deadline)
	if err != nil {
		return err
	}
	letGo(conn)
	return nil
}

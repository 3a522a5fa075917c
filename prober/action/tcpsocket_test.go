// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// A connection is success, with no output; what cannot be dialed is a failure and no
// error.
func TestTCPSocket(t *testing.T) {
	open, closed := raw(t, mute), closedPort(t)
	for _, c := range []struct {
		name, address string
		want          Outcome
	}{
		{"open", open, Outcome{Success: true}},
		{"closed", closed, Outcome{Reason: ConnectionRefused, Output: "dial tcp " + closed + ": connect: connection refused"}},
		{"port -1", "127.0.0.1:-1", Outcome{Reason: Other, Output: "dial tcp: address -1: invalid port"}},
	} {
		if got := attempt(t, tcpProbe(c.address, 10*time.Second)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The host of the probe comes before that of the target.
func TestTCPSocketHost(t *testing.T) {
	host, port := split(raw(t, mute))
	p := &config.TCPSocket{Host: host, Port: config.PortRef{Number: port}}
	f := New(&config.Target{Host: "192.0.2.1"}, &config.Probe{TCPSocket: p, Timeout: 10 * time.Second})
	if got := attempt(t, f); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// A name that does not resolve is a failure of its own reason.
func TestTCPSocketNoSuchHost(t *testing.T) {
	got := attempt(t, tcpProbe("no such host.invalid:80", 5*time.Second))
	if got.Success || got.Reason != DNS {
		t.Errorf("got %+v", got)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package tcpsocket

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// A connection is a success without output. A refused or failed dial is a failure and no error.
func TestTCPSocket(t *testing.T) {
	open, closed := actiontest.Raw(t, actiontest.Mute), actiontest.ClosedPort(t)
	for _, c := range []struct {
		name, address string
		want          action.Outcome
	}{
		{"open", open, action.Outcome{Success: true}},
		{"closed", closed, action.Outcome{Reason: action.ConnectionRefused, Output: "dial tcp " + closed + ": connect: connection refused"}},
		{"port -1", "127.0.0.1:-1", action.Outcome{Reason: action.Other, Output: "dial tcp: address -1: invalid port"}},
	} {
		if got := actiontest.Attempt(t, tcpProbe(c.address, 10*time.Second)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The host of the probe overrides the host of the target.
func TestTCPSocketHost(t *testing.T) {
	host, port := actiontest.Split(actiontest.Raw(t, actiontest.Mute))
	p := &config.TCPSocket{Host: host, Port: config.PortRef{Number: port}}
	f := New(&config.Target{Host: "192.0.2.1"}, &config.Probe{TCPSocket: p, Timeout: 10 * time.Second})
	if got := actiontest.Attempt(t, f); !got.Success {
		t.Errorf("got %+v", got)
	}
}

// A name that does not resolve is a failure with a reason of its own.
func TestTCPSocketNoSuchHost(t *testing.T) {
	got := actiontest.Attempt(t, tcpProbe("no such host.invalid:80", 5*time.Second))
	if got.Success || got.Reason != action.DNS {
		t.Errorf("got %+v", got)
	}
}

// tcpProbe returns a tcpSocket action.
func tcpProbe(address string, timeout time.Duration) action.Func {
	return New(actiontest.TCPSocket(address, timeout))
}

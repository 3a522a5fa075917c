// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package action

import (
	"context"
	"net"
	"testing"
	"time"
)

func BenchmarkTCPSocket(b *testing.B) {
	benchmark(b, tcpProbe(raw(b, mute), time.Minute))
}

// usualTCP connects as a kubelet does.
func usualTCP(address string) Func {
	return func(ctx context.Context) (Outcome, error) {
		conn, err := (&net.Dialer{Timeout: time.Minute, KeepAlive: -1, Control: newDialer().Control}).DialContext(ctx, "tcp", address)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{Success: true}, conn.Close()
	}
}

// BenchmarkBesideUsual compares the costs with those of a net.Dialer.
func BenchmarkBesideUsualTCP(b *testing.B) {
	_, _, bare := servedApart(b)
	beside(b, tcpProbe(bare, time.Minute), usualTCP(bare))
}

// BenchmarkAlone counts what an attempt allocates, and nothing of its server.
func BenchmarkAloneTCP(b *testing.B) {
	_, _, bare := servedApart(b)
	benchmark(b, tcpProbe(bare, time.Minute))
}

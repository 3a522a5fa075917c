// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tcpsocket

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

func TestMain(m *testing.M) { actiontest.Main(m) }

func BenchmarkTCPSocket(b *testing.B) {
	actiontest.Benchmark(b, tcpProbe(actiontest.Raw(b, actiontest.Mute), time.Minute))
}

// usualTCP connects as a kubelet does.
func usualTCP(address string) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		conn, err := (&net.Dialer{Timeout: time.Minute, KeepAlive: -1, Control: dial.NewDialer().Control}).DialContext(ctx, "tcp", address)
		if err != nil {
			return action.Outcome{}, err
		}
		return action.Outcome{Success: true}, conn.Close()
	}
}

// BenchmarkBesideUsual compares the costs with those of a net.Dialer.
func BenchmarkBesideUsual(b *testing.B) {
	_, _, bare := actiontest.ServedApart(b)
	actiontest.Beside(b, tcpProbe(bare, time.Minute), usualTCP(bare))
}

// BenchmarkAlone counts the allocations of an attempt without those of its server.
func BenchmarkAlone(b *testing.B) {
	_, _, bare := actiontest.ServedApart(b)
	actiontest.Benchmark(b, tcpProbe(bare, time.Minute))
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

func benchmark(b *testing.B, f Func) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if got := attempt(b, f); !got.Success {
			b.Fatalf("got %+v", got)
		}
	}
}

func BenchmarkHTTPGet(b *testing.B) {
	benchmark(b, httpProbe(web(b, site()), time.Minute, config.HTTPGet{Path: "/len?n=2"}))
}

func BenchmarkTCPSocket(b *testing.B) {
	benchmark(b, tcpProbe(raw(b, mute), time.Minute))
}

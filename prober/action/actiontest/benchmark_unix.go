// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package actiontest

import (
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Beside runs ours and the usual way by turns. It reports the CPU time of each, and the ratio
// of ours to the usual way.
func Beside(b *testing.B, ours, usual action.Func) {
	b.Helper()
	const block = 100
	var spent [2]time.Duration
	n := 0
	for b.Loop() {
		if n++; n%block != 1 {
			continue
		}
		for i, f := range []action.Func{ours, usual} {
			before := CPU(b)
			for range block {
				if got := Attempt(b, f); !got.Success {
					b.Fatalf("got %+v", got)
				}
			}
			spent[i] += CPU(b) - before
		}
	}
	blocks := float64((n + block - 1) / block * block)
	b.ReportMetric(float64(spent[0].Nanoseconds())/blocks, "ours-cpu-ns/op")
	b.ReportMetric(float64(spent[1].Nanoseconds())/blocks, "usual-cpu-ns/op")
	b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// CPU returns the CPU time that this process has used.
func CPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

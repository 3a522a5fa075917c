// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package actiontest

import (
	"testing"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Attempt makes an attempt. It fails the test if the agent could not make the attempt.
func Attempt(t testing.TB, f action.Func) action.Outcome {
	t.Helper()
	got, err := Tried(t, f)
	if err != nil {
		t.Fatalf("got %+v, error %v; want no error", got, err)
	}
	return got
}

// Tried makes an attempt. If this process did not get to run meanwhile, Tried makes another
// attempt.
func Tried(t testing.TB, f action.Func) (got action.Outcome, err error) {
	t.Helper()
	for range 10 {
		if got, err = f(t.Context()); got.Reason != action.AgentLate {
			break
		}
	}
	return got, err
}

// Benchmark makes attempts that must succeed, and reports their allocations.
func Benchmark(b *testing.B, f action.Func) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if got := Attempt(b, f); !got.Success {
			b.Fatalf("got %+v", got)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"testing"
	"time"
)

// attempt makes one attempt that must be possible.
func attempt(t testing.TB, f Func) Outcome {
	t.Helper()
	got, err := tried(t, f)
	if err != nil {
		t.Fatalf("got %+v, error %v; want no error", got, err)
	}
	return got
}

// tried makes an attempt, and again if this process did not get to run meanwhile.
func tried(t testing.TB, f Func) (got Outcome, err error) {
	t.Helper()
	for range 10 {
		if got, err = f(t.Context()); got.Reason != AgentLate {
			break
		}
	}
	return got, err
}

// eventually waits until ok, and fails after ten seconds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 10s still not: %s", what)
		}
	}
}

func benchmark(b *testing.B, f Func) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if got := attempt(b, f); !got.Success {
			b.Fatalf("got %+v", got)
		}
	}
}

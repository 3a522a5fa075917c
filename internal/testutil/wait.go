// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"testing"
	"time"
)

// patience bounds the wait for an event that a test needs. A test that passes waits much
// less, on a busy machine too.
const patience = 20 * time.Second

// Until waits until a condition holds and returns how long that took. What names the
// condition in the failure of the test.
func Until(t testing.TB, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Since(began) > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

// Receive returns the next value of a channel.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-from:
		return v
	case <-timer.C:
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

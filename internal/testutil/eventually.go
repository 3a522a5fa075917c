// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"testing"
	"time"
)

// patience bounds the wait for an event. A test that passes waits much less, even on a busy
// machine.
const patience = 30 * time.Second

// slowest is the longest pause between two checks.
const slowest = 20 * time.Millisecond

var errNotYet = errors.New("not yet")

// Eventually waits until check returns nil. What names the event in the failure of the
// test, beside the last error.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	eventually(t, patience, what, check)
}

// Until waits until a condition holds, and returns the time.
func Until(t testing.TB, what string, holds func() bool) time.Time {
	t.Helper()
	return Within(t, patience, what, holds)
}

// Within is like Until with a limit of its own.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) time.Time {
	t.Helper()
	eventually(t, limit, what, func() error {
		if holds() {
			return nil
		}
		return errNotYet
	})
	return time.Now()
}

// eventually checks often at first, so that a quick test stays quick.
func eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	pause := time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		<-timer.C
		pause = min(pause*5/4+1, slowest)
		timer.Reset(pause)
	}
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"log/slog"
	"testing"
	"time"
)

// Each failure doubles the wait, from 0.2 s to 30 s. Up to half of the wait is random. A server
// may ask for a longer wait.
func TestFollowerBackOff(t *testing.T) {
	f := following{Follower: NewFollower(Env{}, DefaultPace(), slog.New(slog.DiscardHandler))}
	for failures, want := range []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
		6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 30 * time.Second, 30 * time.Second,
	} {
		for range 100 {
			if got := BackOff(failures, f.pace.RetryMin, f.pace.RetryMax); got < want/2 || got > want {
				t.Fatalf("after %d failures %v, want %v to %v", failures, got, want/2, want)
			}
		}
	}
	if got := BackOff(1000, f.pace.RetryMin, f.pace.RetryMax); got < 15*time.Second {
		t.Errorf("the wait after 1000 failures is %v", got)
	}
	for after, most := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, time.Minute: time.Minute, 0: time.Second} {
		f.failures = 0
		e := Errorf(TroubleAnswer, "asks for %v", after)
		e.After = after
		if got := f.rest(e); got < after || got > most {
			t.Errorf("the server asks for %v: the wait is %v", after, got)
		}
	}
}

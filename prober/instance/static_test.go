// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

var _ Source = Static{}

// A static source has one instance for ever, which has run since the source first heard of the
// target, and it never holds a failure.
func TestStatic(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := gate.Instance{ID: "static", Phase: gate.Running, StartedAt: first, MaxHold: gate.Never}
	if got := (Static{StartedAt: first}).Instance("app"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A source with only the defaults is up, cannot look, is never in doubt, begins no instance,
// and leaves commands to the agent.
func TestDefaults(t *testing.T) {
	s := Static{}
	if !s.Up() || s.CanLook() || s.InDoubt("app") || s.Declare("app") || s.Runner() != nil || s.Describe("app") != (Details{}) {
		t.Errorf("up %t, looks %t, in doubt %t, declares %t, runs with %v, describes %+v",
			s.Up(), s.CanLook(), s.InDoubt("app"), s.Declare("app"), s.Runner(), s.Describe("app"))
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// A static source has one instance for ever, which runs since the target was first
// heard of, and holds nothing.
func TestStatic(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := gate.Instance{ID: "static", Phase: gate.Running, StartedAt: first, MaxHold: gate.Never}
	if got := (Static{StartedAt: first}).Instance("app"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

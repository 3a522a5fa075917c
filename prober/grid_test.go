// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// The first turns of 4,000 probes with a period of 2 s are spread over that period, 100 on each
// slot of 50 ms. So are 1,000 probes with a period of 1 s beside them, 50 on each slot. No
// first turn waits longer than a period.
func TestManyProbesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		var targets []config.Target
		for i := range 4000 {
			var liveness *config.Probe
			if i%4 == 0 {
				liveness = every(time.Second)
			}
			targets = append(targets, app(fmt.Sprintf("t%d", i), nil, every(2*time.Second), liveness))
		}
		w.apply(targets...)
		w.sleepUntil(3 * time.Second)
		for kind, period := range map[string]time.Duration{"readiness": 2 * time.Second, "liveness": time.Second} {
			slots := map[time.Duration]int{}
			for i := range 4000 {
				turns := w.at(fmt.Sprintf("t%d/%s", i, kind))
				if len(turns) == 0 {
					continue
				}
				if turns[0] >= period || turns[0]%slotWidth != 0 {
					t.Fatalf("first turn of %s at %v, want a slot of 50 ms below %v", kind, turns[0], period)
				}
				slots[turns[0]]++
			}
			if len(slots) != int(period/slotWidth) {
				t.Errorf("%s uses %d slots, want all %d", kind, len(slots), period/slotWidth)
			}
			want := map[string]int{"readiness": 100, "liveness": 50}[kind]
			for at, n := range slots {
				if n < want-1 || n > want+1 {
					t.Errorf("%d first turns of %s at %v, want %d", n, kind, at, want)
				}
			}
		}
	})
}

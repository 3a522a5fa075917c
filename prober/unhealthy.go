// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// This file decides when a probe follows its unhealthy period. The turns of that period lie
// between the points of the grid. The grid stays where it is meanwhile, so that thousands of
// probes that recover together do not share their turns for ever after.

// period returns the time from the worker's turn to the next: the unhealthy period, if there is
// one and a turn could bring the probe to Success. The caller holds target.mu.
func (w *worker) period() time.Duration {
	if unhealthy := w.probe.UnhealthyPeriod; unhealthy != 0 && w.result != gate.Success && w.hopes() {
		return unhealthy
	}
	return w.probe.Period
}

// hopes reports whether the worker waits for nothing but time and its target. Turns while it
// waits for an instance, for the start of the target or for the end of a hold would be in vain.
func (w *worker) hopes() bool {
	t := w.target
	p, inst := w.state(), t.life.seen
	held := p.Held && p.InstanceID == inst.ID
	return inst.Phase == gate.Running && t.flags.started == (w.kind != gate.Startup) && !held
}

// hasten makes the worker take a turn now if the next turn is farther away than its unhealthy
// period: the probe has left Success, or begun to hope, by another way than by a turn of its own.
// The caller holds target.mu.
func (w *worker) hasten(now time.Time) {
	if w.probe.UnhealthyPeriod == 0 || w.timer == nil || w.stage != resting {
		return
	}
	// After a poke the turn counts from the next slot.
	most := w.period() + slot(w.probe.Period)
	if w.period() < w.probe.Period && w.target.m.timeOf(w.due).Sub(now) > most {
		w.poke()
	}
}

// backToGrid returns the first point of the grid that is an unhealthy period or more after due,
// the last turn between two points. The caller holds target.mu.
func (w *worker) backToGrid(due time.Time) time.Time {
	unhealthy, period := w.probe.UnhealthyPeriod, w.probe.Period
	point := due.Add(-time.Duration(w.between) * unhealthy)
	away := due.Add(unhealthy).Sub(point)
	return point.Add((away + period - 1).Truncate(period))
}

// samePeriods reports whether two workers have the same periods.
func (w *worker) samePeriods(other *worker) bool {
	return w.probe.Period == other.probe.Period && w.probe.UnhealthyPeriod == other.probe.UnhealthyPeriod
}

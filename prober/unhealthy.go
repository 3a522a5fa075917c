// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
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
	return nextPoint(due.Add(-time.Duration(w.between)*unhealthy), due.Add(unhealthy), period)
}

// follow returns the first turn of a worker that goes on for before, whose next turn would have been
// due, so many unhealthy periods after a point of the grid: a reload has come in between, or the
// outcome of an attempt from before the reload. The turns stay on before's grid, and no closer
// together than both say: thousands of failing probes must not come together. The caller holds
// target.mu.
func (w *worker) follow(before *config.Probe, due time.Time, between uint32, now time.Time) (first time.Time, is uint32) {
	period := w.period()
	if between == 0 && period == w.probe.Period {
		if first = latest(due, period, now); first.After(now.Add(period)) {
			first = now.Add(period)
		}
		return first, 0
	}
	step, point := before.Period, due.Add(-before.Period)
	if between > 0 {
		step, point = before.UnhealthyPeriod, due.Add(-time.Duration(between)*before.UnhealthyPeriod)
	}
	earliest := due.Add(min(step, period) - step)
	if due.After(now) && earliest.Before(now) {
		earliest = now // and not at once, as if the turn was missed
	}
	first = latest(nextPoint(point, earliest, period), period, now)
	if period == w.probe.Period {
		return first, 0
	}
	return first, uint32(first.Sub(point) / period)
}

// nextPoint returns the first point of a grid that is not before at. The grid has a point before at.
func nextPoint(point, at time.Time, period time.Duration) time.Time {
	return point.Add((at.Sub(point) + period - 1).Truncate(period))
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math/rand/v2"
	"time"
)

// This file decides when turns are due: at the points of each probe's grid, which begin the
// slots of time that all probes share.

// slotWidth is the width of the slots in which turns begin, so that one wake-up serves many
// probes. A period shorter than ten slots has narrower slots.
const slotWidth = 50 * time.Millisecond

// slot returns how wide the slots of a period are.
func slot(period time.Duration) time.Duration { return max(min(slotWidth, period/10), 1) }

// slotBefore returns the beginning of the slot that contains at.
func (m *Manager) slotBefore(at time.Time, period time.Duration) time.Time {
	return at.Add(-(at.Sub(m.epoch) % slot(period)))
}

// slotAfter returns the first beginning of a slot that is not before at.
func (m *Manager) slotAfter(at time.Time, period time.Duration) time.Time {
	if before := m.slotBefore(at, period); before.Before(at) {
		return before.Add(slot(period))
	}
	return at
}

// moment is a time in a third of the memory of time.Time: nanoseconds since the manager
// began, plus 1; 0 means none.
type moment int64

func (m *Manager) moment(t time.Time) moment { return moment(t.Sub(m.epoch)) + 1 }

func (m *Manager) timeOf(at moment) time.Time { return m.epoch.Add(time.Duration(at - 1)) }

// next returns when the next turn is due, and how many turns between two points of the grid
// there then are since the last point. If the worker has missed turns, next returns the latest
// of them, which is due at once, and drops the others (rule 5.3). The caller holds target.mu.
func (w *worker) next(now time.Time) (at time.Time, between uint32) {
	due, period := w.target.m.timeOf(w.due), w.period()
	switch {
	case w.poked:
		return now, 0
	case period < w.probe.Period:
		at = latest(due.Add(period), period, now)
		return at, w.between + uint32(at.Sub(due)/period)
	case w.between == 0:
		return latest(due.Add(period), period, now), 0
	}
	return latest(w.backToGrid(due), period, now), 0
}

// latest returns point or, if point is past, the latest point a multiple of the period later
// that is past.
func latest(point time.Time, period time.Duration, now time.Time) time.Time {
	if late := now.Sub(point); late > 0 {
		point = point.Add(late.Truncate(period))
	}
	return point
}

// phases decides how long each probe of some targets waits before its first turn: a random
// time below the period, and short for a few probes. The probes that share a spread divide
// it into equal parts, one for each: probes in one slot wait for each other, and pure chance
// would make some slots half as full again as most.
type phases struct {
	probes int
	free   map[time.Duration][]int // by spread: the parts not drawn yet, shuffled
	parts  map[time.Duration]int   // by spread: the number of parts
}

func newPhases(targets []*target) *phases {
	p := &phases{free: map[time.Duration][]int{}, parts: map[time.Duration]int{}}
	for _, t := range targets {
		p.probes += len(t.workers)
	}
	for _, t := range targets {
		for _, w := range t.workers {
			p.parts[p.spread(w.probe.Period)]++
		}
	}
	for spread, n := range p.parts {
		p.free[spread] = rand.Perm(n)
	}
	return p
}

// spread returns the upper bound of the wait of probes with a period.
func (p *phases) spread(period time.Duration) time.Duration {
	return min(period, time.Duration(p.probes)*time.Millisecond)
}

// draw returns how long a probe with that period waits. Each probe draws once.
func (p *phases) draw(period time.Duration) time.Duration {
	spread := p.spread(period)
	last := len(p.free[spread]) - 1
	part := p.free[spread][last]
	p.free[spread] = p.free[spread][:last]
	return time.Duration((float64(part) + rand.Float64()) / float64(p.parts[spread]) * float64(spread))
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math/rand/v2"
	"time"
)

// This file decides when turns are due: on the grid of each probe, in slots of time that all
// probes share.

// slotWidth is the grid on which the phases of all probes lie: one wake-up then
// serves many probes. A period shorter than ten slots has narrower ones.
const slotWidth = 50 * time.Millisecond

// slot returns how wide the slots of a period are.
func slot(period time.Duration) time.Duration { return max(min(slotWidth, period/10), 1) }

// slotBefore returns the beginning of the slot that holds at.
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

// moment is a time as a worker keeps it, in a third of the room: nanoseconds since the
// manager began, from 1; 0 is none.
type moment int64

func (m *Manager) moment(t time.Time) moment { return moment(t.Sub(m.epoch)) + 1 }

func (m *Manager) timeOf(at moment) time.Time { return m.epoch.Add(time.Duration(at - 1)) }

// next returns the point of the grid of the turn after this one. If points were
// missed, the latest of them is taken, at once; the others are dropped (rule 5.3).
func (w *worker) next(now time.Time) time.Time {
	if w.poked {
		return now
	}
	return w.latest(w.target.m.timeOf(w.due).Add(w.probe.Period), now)
}

// latest returns a point of the grid or, if that is past, the latest one after it that is.
func (w *worker) latest(point, now time.Time) time.Time {
	if late := now.Sub(point); late > 0 {
		point = point.Add(late.Truncate(w.probe.Period))
	}
	return point
}

// phases are how long the probes of some targets wait before their first turn: a time
// at random, as short for few probes as it may be, and below the period. Of the probes
// that are spread over the same time, each has a part of it to itself: what falls on
// one slot waits for each other, and by chance alone some slots would be half as full
// again as most.
type phases struct {
	probes int
	free   map[time.Duration][]int // by spread: the parts that are left, in no order
	parts  map[time.Duration]int   // by spread: how many there were
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

// spread returns the time below which probes of a period wait.
func (p *phases) spread(period time.Duration) time.Duration {
	return min(period, time.Duration(p.probes)*time.Millisecond)
}

// draw returns how long one of the probes waits. It is called once for each.
func (p *phases) draw(period time.Duration) time.Duration {
	spread := p.spread(period)
	last := len(p.free[spread]) - 1
	part := p.free[spread][last]
	p.free[spread] = p.free[spread][:last]
	return time.Duration((float64(part) + rand.Float64()) / float64(p.parts[spread]) * float64(spread))
}

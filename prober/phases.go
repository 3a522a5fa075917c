// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math/rand/v2"
	"time"
)

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

// take returns how long one of the probes waits. It is called once for each.
func (p *phases) take(period time.Duration) time.Duration {
	spread := p.spread(period)
	last := len(p.free[spread]) - 1
	part := p.free[spread][last]
	p.free[spread] = p.free[spread][:last]
	return time.Duration((float64(part) + rand.Float64()) / float64(p.parts[spread]) * float64(spread))
}

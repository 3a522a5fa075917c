// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// standing says how the last attempts of a probe ended: how many in a row were slow. It
// decides who goes first where attempts have to wait for each other.
type standing uint8

const (
	// settled is the standing after an answer, good or bad: such attempts end soon.
	settled standing = 0
	// fresh is the standing of a probe, or an instance, that has not been asked yet: one
	// slow attempt, and it is stuck. What was settled has three.
	fresh standing = 2
	stuck standing = 3
)

// slowAttempt is from where on an attempt counts as slow, however it ends: what takes a
// slot from others is time.
const slowAttempt = time.Second

// after returns the standing after an attempt that took so long. An attempt that the agent
// could not make, or was late for, says nothing.
func (s standing) after(made *tried, took time.Duration) standing {
	switch {
	case made.Reason == action.AgentLate:
		return s
	case made.Reason == action.Timeout || took >= slowAttempt:
		return min(s+1, stuck)
	case made.err != nil:
		return s
	}
	return settled
}

// renew gives the probe of a new instance its standing, also where it waits for a slot:
// then it does so anew. With target.mu held.
func (w *worker) renew() {
	if w.standing <= fresh {
		return
	}
	w.standing = fresh
	if w.stage == waiting {
		w.cancel()
	}
}

// class is a group of standings that share what they may take.
type class uint8

// The classes. Each may take what the next one may, and a quarter of everything that the
// next one may not: however many hang, there is room for those that answer, and for those
// of which nobody knows yet.
const (
	answering class = iota
	doubtful
	hanging
	numClasses
)

func (s standing) class() class {
	switch {
	case s == settled:
		return answering
	case s < stuck:
		return doubtful
	}
	return hanging
}

// shares are the parts of everything, in quarters, that a class and those after it may
// take together.
var shares = [numClasses]int{4, 3, 2}

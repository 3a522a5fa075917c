// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// standing counts how many attempts of a probe in a row were slow. It decides who goes first
// when attempts have to wait for each other.
type standing uint8

const (
	// settled is the standing after an answer, good or bad: such attempts end soon.
	settled standing = 0
	// fresh is the standing of a probe that has not asked the current instance yet. One slow
	// attempt makes a fresh probe stuck; a settled probe needs three.
	fresh standing = 2
	stuck standing = 3
)

// slowAttempt is the duration from which an attempt is slow, however it ends: its time is
// what it takes from others.
const slowAttempt = time.Second

// after returns the standing after an attempt that took that long. A quick attempt that the
// agent could not make, or any that it was late for, changes nothing.
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

// renew makes a stuck probe fresh for a new instance. A worker that waits for a slot then
// waits anew, in its new class. The caller holds target.mu.
func (w *worker) renew() {
	if w.standing <= fresh {
		return
	}
	w.standing = fresh
	if w.stage == waiting {
		w.cancel()
	}
}

// class is a group of standings that share an upper bound of slots.
type class uint8

// The classes. Each may take as much as the next one and a quarter of all slots more, so that
// hanging probes always leave room for those that answer and for those not known yet.
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

// shares holds the quarters of all slots that a class and the classes after it may take
// together.
var shares = [numClasses]int{4, 3, 2}

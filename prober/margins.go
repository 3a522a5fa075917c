// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// This file counts how near a probe comes to its failureThreshold and to its timeout.

// runBounds are the upper bounds of the classic buckets of the lengths of runs.
var runBounds = [...]float64{1, 2, 3, 5, 8, 13, 21}

// RunBounds returns the upper bounds of the classic buckets of FailureRuns.Lengths, without the +Inf
// bucket.
func RunBounds() []float64 { return slices.Clone(runBounds[:]) }

// FailureRunsOf returns runs of these lengths, none of them a near miss.
func FailureRunsOf(lengths ...float64) *FailureRuns {
	var s sparse
	for _, n := range lengths {
		s.add(n, runBounds[:])
	}
	return &FailureRuns{Lengths: s.counted(runBounds[:])}
}

// margins counts the runs of failures that ended in a success, and has the worst of the last hour.
type margins struct {
	runs       sparse // lengths
	nearMisses uint64
	hour       hour
}

// endRun counts a run of failed attempts that a success has ended. The caller holds target.mu.
func (w *worker) endRun(length uint64) {
	if length == 0 {
		return
	}
	m := &w.need().margins
	m.runs.add(float64(length), runBounds[:])
	if length+1 == uint64(w.probe.FailureThreshold) {
		m.nearMisses++
	}
}

// noteSlow notes an attempt if it is a slow success. The caller holds target.mu.
func (w *worker) noteSlow(made *attempt) {
	if made.outcome() == Successful && made.took() >= SlowFrom(w.probe.Timeout) {
		w.need().margins.hour.succeed(made.ended, made.took())
	}
}

// noteRun notes how long the run of failures is that an attempt has made longer; before is the
// probe's state before the attempt. The failures of the instance before may count towards the
// threshold as well (rule 4.22). The caller holds target.mu.
func (w *worker) noteRun(at time.Time, before gate.Probe) {
	run := w.history.failures.streak
	if before.Last == gate.Failure {
		run = max(run, uint64(before.Run)+1)
	}
	w.need().margins.hour.fail(at, run)
}

// keepCounts takes over the counters of was, a probe before a reload, if the two have the same
// series. The caller holds both locks.
func (w *worker) keepCounts(was *worker, sameSeries bool) {
	if sameSeries {
		w.counts = was.cloneCounts()
	}
	w.keepHour(was, time.Now())
}

// keepHour takes over the last hour of was if the two probes have the same limits; otherwise the
// hour begins now.
func (w *worker) keepHour(was *worker, now time.Time) {
	alike := sameRun(was, w) && was.probe.Timeout == w.probe.Timeout
	switch {
	case was.others != nil && alike:
		w.need().margins.hour = was.others.margins.hour
	case !alike:
		w.target.hourBegan = now.UnixNano()
		if w.others != nil {
			w.others.margins.hour = hour{}
		}
	}
}

// tellMargins copies the runs into a status and, at Full, the last hour. The caller holds target.mu.
func (w *worker) tellMargins(s *ProbeStatus, d Detail, now time.Time) {
	if o := w.others; o != nil && (s.Failed > 0 || o.margins.runs.count() > 0) {
		s.Runs = &FailureRuns{Lengths: o.margins.runs.counted(runBounds[:]), NearMisses: o.margins.nearMisses}
	}
	from := max(w.target.hourBegan, now.Add(-time.Hour).UnixNano())
	if d < Full || w.lastRun < from {
		return
	}
	s.LastHour = new(LastHour)
	if n := len(w.history.successes); n > 0 {
		s.LastHour.Succeeded = w.history.successes[n-1].last >= from
	}
	if w.others != nil {
		s.LastHour.WorstRun, s.LastHour.SlowestSuccess = w.others.margins.hour.worstAt(now)
	}
}

// SlowFrom returns the duration from which a success is slow: a tenth of the timeout. The last hour
// of a probe that neither fails nor is slow takes no memory.
func SlowFrom(timeout time.Duration) time.Duration { return timeout / 10 }

// An hour is the present slot and the six before it: the last 60 to 70 minutes.
const (
	hourSlots  = 7
	slotLength = 10 * time.Minute
)

// hour has the worst of each slot of the last hour. The zero value is an hour in which nothing
// failed or was slow.
type hour struct {
	newest  uint32            // the number of the newest slot since the epoch
	slowest [hourSlots]uint32 // slow successes, in microseconds
	runs    [hourSlots]uint16 // failed attempts in a row
}

func (h *hour) fail(at time.Time, run uint64) {
	i := h.enter(at)
	h.runs[i] = max(h.runs[i], uint16(min(run, math.MaxUint16)))
}

func (h *hour) succeed(at time.Time, took time.Duration) {
	i := h.enter(at)
	h.slowest[i] = max(h.slowest[i], uint32(min(took.Microseconds(), math.MaxUint32)))
}

// enter returns the index of the slot of a moment, after it has emptied the slots that are over.
// A moment shortly before the newest slot counts for that one: the clock was set.
func (h *hour) enter(at time.Time) int {
	n := uint32(at.Unix() / int64(slotLength/time.Second))
	if n > h.newest || h.newest-n >= hourSlots {
		passed := uint32(hourSlots)
		if n > h.newest {
			passed = min(n-h.newest, hourSlots)
		}
		for i := range passed {
			h.slowest[(n-i)%hourSlots], h.runs[(n-i)%hourSlots] = 0, 0
		}
		h.newest = n
	}
	return int(h.newest % hourSlots)
}

// worstAt returns the longest run and the slowest of the slow successes of the hour before now.
func (h *hour) worstAt(now time.Time) (run uint64, slowest time.Duration) {
	c := *h
	c.enter(now)
	return uint64(slices.Max(c.runs[:])), time.Duration(slices.Max(c.slowest[:])) * time.Microsecond
}

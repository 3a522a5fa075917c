// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package prober

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// counts are what a probe's series count.
type counts struct {
	attempts    [UnknownOutcome + 1]uint64
	durations   [UnknownOutcome + 1]*sparse // nil until there is one
	reasons     []ReasonCount
	transitions uint64
}

func (c *counts) count(o AttemptOutcome, reason action.Reason, d time.Duration) {
	c.attempts[o]++
	if c.durations[o] == nil {
		c.durations[o] = new(sparse)
	}
	c.durations[o].observe(d)
	if o == Successful {
		return
	}
	i := slices.IndexFunc(c.reasons, func(r ReasonCount) bool { return r.Reason == reason })
	if i < 0 {
		i = len(c.reasons)
		c.reasons = append(c.reasons, ReasonCount{Reason: reason})
	}
	c.reasons[i].Count++
}

// cloneCounts returns a copy that shares no state.
func (c *counts) cloneCounts() counts {
	n := *c
	n.reasons = slices.Clone(c.reasons)
	for i, h := range c.durations {
		if h != nil {
			n.durations[i] = h.clone()
		}
	}
	return n
}

// duration returns a copy of an outcome's histogram.
func (c *counts) duration(o AttemptOutcome) Histogram {
	if c.durations[o] == nil {
		return Histogram{}
	}
	return c.durations[o].histogram()
}

// status returns a copy of all that is known of the probe, with target.mu held.
func (w *worker) status(d Detail, inst gate.Instance, now time.Time) ProbeStatus {
	t, p := w.target, w.target.state.Probe(w.kind)
	s := ProbeStatus{
		Kind:                w.kind,
		Action:              w.probe.Action(),
		InitialDelay:        w.probe.InitialDelay,
		Timeout:             w.probe.Timeout,
		Period:              w.probe.Period,
		SuccessThreshold:    w.probe.SuccessThreshold,
		FailureThreshold:    w.probe.FailureThreshold,
		Result:              t.state.Result(w.kind, inst),
		Last:                p.Last,
		Run:                 p.Run,
		Held:                p.Held,
		ConsecutiveFailures: w.streak,
		Reason:              w.reason,
		Successful:          w.attempts[Successful],
		Failed:              w.attempts[Failed],
		Unknown:             w.attempts[UnknownOutcome],
		Failures:            slices.Clone(w.reasons),
		Transitions:         w.transitions,
		LastRun:             w.lastRun,
	}
	// The gate itself says whether it would let an attempt through now.
	_, verdict := t.state.Next(w.kind, inst, t.flags.started, now)
	s.Gated = verdict == gate.Wait && !p.Held
	if !w.stopped && !w.quit {
		s.NextTurn = w.due
		if w.turning {
			s.NextTurn = w.next(now)
		}
	}
	if d >= Series {
		s.Durations = Durations{
			Successful: w.duration(Successful),
			Failed:     w.duration(Failed),
			Unknown:    w.duration(UnknownOutcome),
		}
	}
	if d >= Full {
		s.Attempts = w.history.last()
		s.LastFailures = w.history.failures.attempts()
	}
	return s
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// counts are what a probe's series count.
type counts struct {
	successful  sparse
	others      *others // nil until there is one: most probes never fail
	transitions uint64
}

// others are the attempts that did not succeed.
type others struct {
	failed, unknown sparse
	reasons         []ReasonCount
}

// of returns the attempts of one outcome.
func (c *counts) of(o AttemptOutcome) *sparse {
	switch {
	case o == Successful:
		return &c.successful
	case c.others == nil:
		return new(sparse)
	case o == Failed:
		return &c.others.failed
	}
	return &c.others.unknown
}

func (c *counts) count(o AttemptOutcome, reason action.Reason, d time.Duration) {
	if o != Successful {
		if c.others == nil {
			c.others = new(others)
		}
		c.others.because(reason)
	}
	c.of(o).observe(d)
}

// because counts a reason.
func (u *others) because(reason action.Reason) {
	i := slices.IndexFunc(u.reasons, func(r ReasonCount) bool { return r.Reason == reason })
	if i < 0 {
		i = len(u.reasons)
		u.reasons = append(u.reasons, ReasonCount{Reason: reason})
	}
	u.reasons[i].Count++
}

// cloneCounts returns a copy that shares no state.
func (c *counts) cloneCounts() counts {
	n := counts{successful: c.successful.clone(), transitions: c.transitions}
	if c.others != nil {
		n.others = &others{
			failed:  c.others.failed.clone(),
			unknown: c.others.unknown.clone(),
			reasons: slices.Clone(c.others.reasons),
		}
	}
	return n
}

// status returns a copy of all that is known of the probe, with target.mu held.
func (w *worker) status(d Detail, inst gate.Instance, now time.Time) ProbeStatus {
	t, p := w.target, w.target.state.Probe(w.kind)
	s := ProbeStatus{
		Kind:             w.kind,
		Action:           w.probe.Action(),
		InitialDelay:     w.probe.InitialDelay,
		Timeout:          w.probe.Timeout,
		Period:           w.probe.Period,
		SuccessThreshold: w.probe.SuccessThreshold,
		FailureThreshold: w.probe.FailureThreshold,
		Result:           t.state.Result(w.kind, inst),
		Last:             p.Last,
		Run:              p.Run,
		Held:             p.Held,
		Successful:       w.of(Successful).count(),
		Failed:           w.of(Failed).count(),
		Unknown:          w.of(UnknownOutcome).count(),
		Transitions:      w.transitions,
	}
	if f := w.history.failures; f != nil {
		s.ConsecutiveFailures, s.Reason = f.streak, f.reason
	}
	if w.others != nil {
		s.Failures = slices.Clone(w.others.reasons)
	}
	s.Changed = time.Unix(0, w.changed)
	if w.lastRun != 0 {
		s.LastRun = time.Unix(0, w.lastRun)
	}
	// The gate itself says whether it would let an attempt through now.
	_, verdict := t.state.Next(w.kind, inst, t.flags.started, now)
	s.Gated = verdict == gate.Wait && !p.Held
	if !w.stopped && !w.quit && w.due != 0 {
		next := t.m.timeOf(w.due)
		if w.stage != resting {
			next = w.next(now)
		}
		s.NextTurn = now.Add(next.Sub(now)) // by the clock as it goes now
		s.HeldUntil = w.heldUntil(p, inst, s.NextTurn)
	}
	if d >= Series {
		s.Durations = Durations{
			Successful: w.of(Successful).histogram(),
			Failed:     w.of(Failed).histogram(),
			Unknown:    w.of(UnknownOutcome).histogram(),
		}
	}
	if d >= Full {
		s.Address = w.address()
		w.history.tell(&s)
	}
	return s
}

// heldUntil returns the turn at which a hold ends by itself, the zero time if there is
// none; next is the next turn.
func (w *worker) heldUntil(p gate.Probe, inst gate.Instance, next time.Time) time.Time {
	end := p.HoldEnd(inst.MaxHold)
	if end.IsZero() {
		return end
	}
	if wait := end.Sub(next); wait > 0 {
		next = next.Add((wait + w.probe.Period - 1).Truncate(w.probe.Period))
	}
	return next
}

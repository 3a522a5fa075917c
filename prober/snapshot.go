// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// This file copies the state at one moment; the copies belong to the caller.

// Summary returns the aggregates, in constant time.
func (m *Manager) Summary() Summary { return m.tally.read() }

// Status returns the state of all targets. It waits for no attempt and for no reload.
func (m *Manager) Status(d Detail) Status {
	m.mu.Lock()
	targets := m.targets
	s := Status{Summary: m.tally.read()}
	m.mu.Unlock()
	s.InFlight = int(m.inFlight.Load())
	s.Waiting = len(m.waiting())
	s.Panics = m.panics.Load()
	s.SourceUp = m.sources.up()
	s.Statuses = make([]TargetStatus, len(targets))
	now := time.Now()
	for i, t := range targets {
		s.Statuses[i] = t.status(d, now)
		if s.Statuses[i].Source == config.SourceStatic {
			s.SourceUp[config.SourceStatic] = true
		}
	}
	s.Lateness = m.Lateness()
	return s
}

// Lateness returns how late turns have begun, since the manager was made.
func (m *Manager) Lateness() Histogram {
	m.latenessMu.Lock()
	defer m.latenessMu.Unlock()
	return m.lateness.histogram()
}

// Target returns the state of one target, and whether the target exists.
func (m *Manager) Target(name string, d Detail) (TargetStatus, bool) {
	t := m.find(name)
	if t == nil {
		return TargetStatus{}, false
	}
	return t.status(d, time.Now()), true
}

// Look makes the source of a target look afresh, if the source can, and returns the state of the
// target after the look. seen says that the target exists, and that the instance of the state is
// what its source sees at this moment: not the last view from before some trouble, nor an
// instance that stands in for another until a source has seen it. seen is false if ctx ends
// before the look.
func (m *Manager) Look(ctx context.Context, name string, d Detail) (s TargetStatus, seen bool) {
	t := m.find(name)
	if t == nil {
		return TargetStatus{}, false
	}
	if t.source.CanLook() {
		t.source.Look(ctx)
	}
	logAll(t.refresh(time.Now()))
	seen = ctx.Err() == nil && t.source.Sees(name)
	s = t.status(d, time.Now())
	// A reload may have replaced the target, which then changes no more.
	return s, seen && m.find(name) == t && t.isSeen(s.Instance)
}

// isSeen reports whether an instance is the source's own, or was declared in its place. The
// caller must not hold mu.
func (t *target) isSeen(inst gate.Instance) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.source.Instance(t.cfg.Name).ID
	if r := t.life.rare; r != nil && r.declared > 0 && r.of == of && of != "" {
		of = declaredID(of, r.declared)
	}
	return inst.ID == of && of != ""
}

// status returns a copy of the target's state. The caller must not hold mu.
func (t *target) status(d Detail, now time.Time) TargetStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	inst := t.life.seen
	s := TargetStatus{
		Name:            t.cfg.Name,
		Labels:          slices.Clone(t.cfg.Labels),
		Source:          cmp.Or(t.cfg.Instance.Source, config.SourceStatic),
		SourceReason:    t.cfg.Instance.Why,
		Instance:        inst,
		Running:         inst.Phase == gate.Running,
		Started:         t.flags.started,
		Ready:           t.flags.ready,
		Live:            t.flags.live,
		Changed:         t.since.changed(),
		Restarts:        t.life.restarts,
		StartupDuration: t.life.startup,
		Probes:          make([]ProbeStatus, len(t.workers)),
	}
	for i, w := range t.workers {
		s.Probes[i] = w.status(d, inst, now)
	}
	for _, k := range gate.Kinds() {
		if c, ok := t.combined(k, inst); ok {
			s.Combined = append(s.Combined, c)
		}
	}
	s.Details = t.source.Describe(t.cfg.Name)
	s.Details.Message = t.scrub.Clean(s.Details.Message, maxMessage)
	return s
}

// combined returns what the list of a kind says, if the kind has a list. The caller holds mu.
func (t *target) combined(k gate.Kind, inst gate.Instance) (c CombinedStatus, list bool) {
	c = CombinedStatus{Kind: k, Members: len(t.cfg.Members(k)), Require: t.cfg.Require(k)}
	if c.Members == 0 {
		return CombinedStatus{}, false
	}
	for i := range c.Members {
		switch t.state.Result(k, i, inst) {
		case gate.Success:
			c.Succeeding++
		case gate.Failure:
			c.Failing++
		case gate.Unknown:
		}
	}
	c.Result = gate.Combine(c.Members, c.Require, c.Succeeding, c.Failing)
	return c, true
}

// status returns a copy of the probe's state. The caller holds target.mu.
func (w *worker) status(d Detail, inst gate.Instance, now time.Time) ProbeStatus {
	t, p := w.target, w.state()
	s := ProbeStatus{
		Kind:             w.kind,
		Name:             w.probe.Name,
		Action:           w.probe.Action(),
		InitialDelay:     w.probe.InitialDelay,
		Timeout:          w.probe.Timeout,
		Period:           w.probe.Period,
		UnhealthyPeriod:  w.probe.UnhealthyPeriod,
		SuccessThreshold: w.probe.SuccessThreshold,
		FailureThreshold: w.probe.FailureThreshold,
		Result:           t.state.Result(w.kind, int(w.number), inst),
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
	if at := w.certExpires(); at != 0 {
		s.CertExpires = time.Unix(at, 0)
	}
	s.LastHeartbeat = w.lastBeat()
	// The gate itself decides whether an attempt may be made now.
	s.Gated = !p.Held && t.state.Peek(w.kind, int(w.number), inst, t.flags.started, now) == gate.Wait
	if !w.stopped && !w.quit && w.due != 0 {
		next := t.m.timeOf(w.due)
		if w.stage != resting {
			next, _ = w.next(now)
		}
		s.NextTurn = now.Add(next.Sub(now)) // now has today's wall clock, next that of the manager's beginning
		s.HeldUntil = w.heldUntil(p, inst, s.NextTurn)
	}
	if d >= Series {
		s.Durations = Durations{
			Successful: w.of(Successful).histogram(),
			Failed:     w.of(Failed).histogram(),
			Unknown:    w.of(UnknownOutcome).histogram(),
		}
	}
	if d >= Series {
		w.tellMargins(&s, d, now)
	}
	if d >= Full {
		s.Address = w.address()
		w.history.tell(&s)
	}
	return s
}

// heldUntil returns the time of the turn at which a hold ends by itself; the zero time if
// there is no such turn. next is the next turn.
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

// maxRemoved is how many names of removed targets are kept.
const maxRemoved = 1000

// Removed reports whether a reload has removed a target of that name. It knows the last
// maxRemoved names.
func (m *Manager) Removed(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.removed, name)
}

// Overdue returns the name, such as target/kind, of each probe whose turn is overdue by more than 30 s and
// three periods: a sign that the agent, not a target, is unwell.
func (m *Manager) Overdue() []string {
	var overdue []string
	now := time.Now()
	for _, t := range m.list() {
		overdue = append(overdue, t.overdue(now)...)
	}
	for _, is := range m.waiting() {
		is.target.mu.Lock()
		if is.overdue(now) {
			overdue = append(overdue, is.name().String())
		}
		is.target.mu.Unlock()
	}
	return overdue
}

// overdue returns the names of the overdue probes. The caller must not hold mu.
func (t *target) overdue(now time.Time) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.workers {
		if w.overdue(now) {
			names = append(names, w.name().String())
		}
	}
	return names
}

// overdue reports whether the next turn, or the end of the running attempt, is overdue by
// more than 30 s and three periods. A turn that waits for a slot is not overdue as long as
// slots come free: then targets hang, and the agent does not. The caller holds target.mu.
func (w *worker) overdue(now time.Time) bool {
	limit, m := max(30*time.Second, 3*w.probe.Period), w.target.m
	switch {
	case w.began != 0: // even if the worker is stopped
		return now.Sub(m.timeOf(w.began))-limit > maxTries*w.probe.Timeout // a sum could overflow
	case w.stopped || w.quit || w.timer == nil:
		return false
	}
	return now.Sub(m.timeOf(w.readyAt)) > limit && (w.stage != waiting || m.slots.stalled(now) > limit)
}

// waiting returns the replaced workers that probes of the configuration wait for.
func (m *Manager) waiting() []*leaver {
	m.mu.Lock()
	byName := m.byName
	m.mu.Unlock()
	return slices.DeleteFunc(m.leaving.all(), func(is *leaver) bool {
		t := byName[is.target.cfg.Name]
		return t == nil || t.worker(is.kind, is.probe.Name) == nil
	})
}

// Waiting returns the name, such as target/kind, of each probe that waits for the end of an attempt from before
// a reload.
func (m *Manager) Waiting() []string {
	var names []string
	for _, is := range m.waiting() {
		names = append(names, is.name().String())
	}
	return names
}

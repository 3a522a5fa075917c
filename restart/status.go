// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// This file has what the Restarter tells.

// Result is how an act ended: the value of a metric's label.
type Result string

// The results. An act that is under way has none.
const (
	Succeeded Result = "succeeded"
	Failed    Result = "failed"
	// Stale says that nothing was done: the verdict did not stand any more, or nobody could
	// tell whether it did.
	Stale Result = "stale"
	// DryRun says that nothing was done because the file says so.
	DryRun Result = "dry_run"
)

// Results returns all results.
func Results() [4]Result { return [...]Result{Succeeded, Failed, Stale, DryRun} }

// Act is one act, or one that was dropped.
type Act struct {
	// Began is when the act began. Duration is how long it took, or has taken so far.
	Began    time.Time
	Duration time.Duration
	// Instance is the ID of the instance that the verdict is about.
	Instance string
	// Kind is the probe that gave the verdict, and Probe its name if the probe is a member of a
	// list: the member that failed last. Reason and Output are those of its last failure,
	// and Failures counts the failures in a row, of which Threshold make a Failure.
	Kind      gate.Kind
	Probe     string
	Reason    action.Reason
	Output    string // cut, and without secrets
	Failures  uint64
	Threshold int
	// Handler is what acted: signal, docker, systemd or exec.
	Handler string
	Result  Result // empty while the act is under way
	// Message says in one line what was done, or why not; cut, and without secrets.
	Message string
}

// Status is the state of the Restarter at one moment. The caller owns the Status.
type Status struct {
	// Targets has an entry for each target with a restart block, in the order of the
	// configuration.
	Targets []TargetStatus
}

// TargetStatus is the state of one target that has a restart block.
type TargetStatus struct {
	Name   string
	Labels []config.Label // sorted by name

	// Handler is how the target is restarted: signal, docker, systemd or exec.
	Handler string
	DryRun  bool

	// Current is the act that is under way; nil if there is none.
	Current *Act
	// Wanted says that a verdict stands and no act is under way: the next act begins as soon as
	// the back-off and the limit allow.
	Wanted bool
	// NotBefore is when the next act may begin, by the back-off and the limit; the zero time if
	// at once. Left is how long that is from now.
	NotBefore time.Time
	Left      time.Duration
	// BackOff is the length of the present back-off, and BackOffLeft what is left of it; both
	// are 0 without one. BackOffs counts the back-offs in a row: 3 for the third. 0 stands for
	// the wait of an agent that has just started.
	BackOff, BackOffLeft time.Duration
	BackOffs             int
	// Limit is the file's limit. Limited says that it is spent, and LimitedUntil until when.
	Limit        config.Limit
	Limited      bool
	LimitedUntil time.Time

	// Acts are the last acts, oldest first, without Current.
	Acts []Act
	// Counts counts the acts by result.
	Counts Counts
}

// Counts counts acts by result.
type Counts struct{ Succeeded, Failed, Stale, DryRun uint64 }

// Of returns the count of a result.
func (c Counts) Of(r Result) uint64 {
	switch r {
	case Succeeded:
		return c.Succeeded
	case Failed:
		return c.Failed
	case Stale:
		return c.Stale
	case DryRun:
		return c.DryRun
	}
	return 0
}

// maxActs is how many acts of a target are remembered.
const maxActs = 10

// Status returns the state of all targets that have a restart block.
func (r *Restarter) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Targets: make([]TargetStatus, len(r.targets))}
	now, clock := r.now(), time.Now()
	for i, t := range r.targets {
		s.Targets[i] = r.status(t, now, clock)
	}
	return s
}

// Target returns the state of one target, and whether the target has a restart block.
func (r *Restarter) Target(name string) (TargetStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.byName[name]
	if t == nil || t.former {
		return TargetStatus{}, false
	}
	return r.status(t, r.now(), time.Now()), true
}

// status returns a copy of the target's state at a moment, which the clock calls clock. The
// caller holds mu.
func (r *Restarter) status(t *target, now moment, clock time.Time) TargetStatus {
	block := t.cfg.Restart
	s := TargetStatus{
		Name:    t.cfg.Name,
		Labels:  slices.Clone(t.cfg.Labels),
		Handler: block.Handler(),
		DryRun:  block.DryRun,
		Wanted:  t.wanted && t.current == nil && r.ctx.Err() == nil,
		Limit:   block.Limit,
		Acts:    slices.Clone(t.acts),
		Counts:  t.counts,
	}
	if t.current != nil {
		current := *t.current
		current.Duration = clock.Sub(current.Began)
		s.Current = &current
	}
	if at := t.pace.notBefore(block); at > now {
		s.Left = at - now
		s.NotBefore = clock.Add(s.Left)
	}
	if length, over := t.pace.backOff(block.BackOff); over > now {
		s.BackOff, s.BackOffLeft, s.BackOffs = length, over-now, t.pace.inRow
	}
	if until := t.pace.limited(block.Limit); until > now {
		s.Limited, s.LimitedUntil = true, clock.Add(until-now)
	}
	return s
}

// remember adds an act that has ended to the last acts and to the counters. The caller holds
// Restarter.mu.
func (t *target) remember(a Act) {
	if len(t.acts) == maxActs {
		t.acts = slices.Delete(t.acts, 0, 1)
	}
	t.acts = append(t.acts, a)
	switch a.Result {
	case Succeeded:
		t.counts.Succeeded++
	case Failed:
		t.counts.Failed++
	case Stale:
		t.counts.Stale++
	case DryRun:
		t.counts.DryRun++
	}
}

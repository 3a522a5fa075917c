// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
)

// This file is the loop that begins acts: whenever a target changes, and when a back-off is over.

// run considers targets until ctx is done.
func (r *Restarter) run(ctx context.Context) {
	changes := r.o.Prober.Subscribe()
	defer changes.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		all := false
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			all = true
		case <-changes.C:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		if r.mustBeQuiet() {
			r.cancel()
			return
		}
		changed := changes.Changes()
		for _, t := range r.toConsider(all || changed.All, changed.Targets) {
			r.consider(t)
		}
		if next := r.next(); next > 0 {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// mustBeQuiet reports whether nothing may be done about any verdict any more, because the agent
// or its pod is about to end. Neither comes back.
func (r *Restarter) mustBeQuiet() bool {
	s := r.o.Prober.Summary()
	return s.Stopping || s.Terminating || r.podDeleted()
}

// podDeleted reports whether some container of the agent's own pod is being deleted, and so the
// whole pod is.
func (r *Restarter) podDeleted() bool {
	r.mu.Lock()
	pod := r.pod
	r.mu.Unlock()
	for _, name := range pod {
		if s, ok := r.o.Prober.Target(name, prober.Brief); ok && s.Instance.Deleting {
			return true
		}
	}
	return false
}

// toConsider returns all targets, or those that have changed and those that are due.
func (r *Restarter) toConsider(all bool, changed []string) []*target {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all {
		return r.targets
	}
	var some []*target
	for _, name := range changed {
		if t := r.byName[name]; t != nil {
			t.due = 1 // long over
		}
	}
	now := r.now()
	for _, t := range r.targets {
		if t.due > 0 && t.due <= now {
			some = append(some, t)
		}
	}
	return some
}

// next returns how long until a target is due; 0 means not before a change.
func (r *Restarter) next() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first moment
	for _, t := range r.targets {
		if t.due > 0 && (first == 0 || t.due < first) {
			first = t.due
		}
	}
	if first == 0 {
		return 0
	}
	return max(first-r.now(), 1)
}

// consider begins an act if the target needs one and may have one now, or decides when to
// consider the target again.
func (r *Restarter) consider(t *target) {
	r.mu.Lock()
	c, scrub := t.cfg, t.scrub
	r.mu.Unlock()
	s, ok := r.o.Prober.Target(c.Name, prober.Brief)
	var v verdict
	if ok {
		v = verdictOn(&s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.due, t.wanted = 0, v != verdict{}
	if !t.wanted || t.busy || t.cfg != c || r.suspended {
		return // the end of the act, or of the reload, wakes the loop
	}
	if at := max(t.pace.notBefore(c.Restart), t.retry, r.notBeforeOthers(t, v.instance)); at > r.now() {
		t.due = at
		return
	}
	t.busy = true
	r.work.Go(func() { r.act(t, job{cfg: c, scrub: scrub, verdict: v}) })
}

// notBeforeOthers returns when the other targets of the same instance let an act begin: not while
// an act for one of them is under way, nor in the back-off or the limit after it. 0 means at once.
// The caller holds mu.
func (r *Restarter) notBeforeOthers(t *target, instance string) (at moment) {
	for _, o := range r.byName {
		switch {
		case o == t:
		case o.current != nil && o.current.Instance == instance:
			at = max(at, r.now()+staleWait)
		case o.ours.instance == instance && !o.cfg.Restart.DryRun:
			at = max(at, o.pace.notBefore(o.cfg.Restart))
		}
	}
	return at
}

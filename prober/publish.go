// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// This file derives the published flags of a target from its state, and counts targets by them.

// flags are the derived conditions of a target.
type flags struct {
	started, ready, live bool
}

// since holds when each flag of a target last changed, in Unix nanoseconds.
type since struct{ started, ready, live int64 }

// sinceAll returns now for every flag: the agent begins to watch a new target.
func sinceAll(now time.Time) since {
	at := now.UnixNano()
	return since{at, at, at}
}

// changed returns since as times.
func (s since) changed() Changed {
	return Changed{time.Unix(0, s.started), time.Unix(0, s.ready), time.Unix(0, s.live)}
}

// publish derives the flags of the target from its state and tells readers of changes. It is
// called once for each event that may change the state: a turn, the end of an attempt, news
// of the instance. When the instance has just started, the probes that waited for that take a
// turn at once. The caller holds mu.
func (t *target) publish(inst gate.Instance, now time.Time) {
	was := t.flags
	changed := t.derive(inst, now)
	if is := t.flags; was != is {
		t.m.tally.move(was, is)
		if is.started && !was.started {
			t.poke(gate.Readiness, gate.Liveness)
		}
	}
	if changed {
		t.m.subscriptions.tell(t.cfg.Name)
	}
	for _, w := range t.workers {
		w.hasten(now)
	}
}

// derive brings up to date what follows from the state, and tells nobody. It reports whether
// readers must be told of a change.
func (t *target) derive(inst gate.Instance, now time.Time) (changed bool) {
	t.tellHeld()
	is := t.flagsOf(inst)
	changed = t.date(inst, is, now) || t.instanceChanged
	t.flags, t.instanceChanged = is, false
	t.noteStarted(inst, now)
	return changed
}

// flagsOf returns the flags of an instance.
func (t *target) flagsOf(inst gate.Instance) flags {
	return flags{started: t.state.Started(inst), ready: t.state.Ready(inst), live: t.state.Live(inst)}
}

// date records when the flags, which become is, and the results change. It reports whether
// any flag, result or hold has changed, or whether a probe has failed often enough for a restart.
func (t *target) date(inst gate.Instance, is flags, now time.Time) (changed bool) {
	at := now.UnixNano()
	changed = is != t.flags
	if is.started != t.flags.started {
		t.since.started = at
	}
	if is.ready != t.flags.ready {
		t.since.ready = at
	}
	if is.live != t.flags.live {
		t.since.live = at
	}
	for _, w := range t.workers {
		if r := t.state.Result(w.kind, int(w.number), inst); r != w.result || w.changed == 0 {
			w.result, w.changed, changed = r, at, true
		}
		if held := w.state().Held; held != w.held {
			w.held, changed = held, true
		}
		if failing := w.failing(); failing != w.enough {
			w.enough, changed = failing, true
		}
	}
	return changed
}

// failing reports whether the target has a restart block and as many attempts in a row have
// failed as the failureThreshold says. The result may be Failure before, by the failures of the
// instance before or by those of the probe that a reload has replaced.
func (w *worker) failing() bool {
	f := w.history.failures
	return w.target.cfg.Restart != nil && f != nil && f.streak >= uint64(max(w.probe.FailureThreshold, 1))
}

// noteStarted records how long the instance took until started.
func (t *target) noteStarted(inst gate.Instance, now time.Time) {
	if t.flags.started && t.life.startup < 0 && !inst.StartedAt.IsZero() {
		t.life.startup = max(0, now.Sub(inst.StartedAt))
	}
}

// tally counts targets by their flags. Each change updates it, so that the aggregates cost
// the same for any number of targets. Its lock is the innermost one.
type tally struct {
	mu  sync.Mutex
	sum Summary
}

func (t *tally) read() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum
}

// move moves a target from one set of flags to another.
func (t *tally) move(from, to flags) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(from, -1)
	t.add(to, 1)
}

// replace removes the targets of out and adds those of in, so that no reader sees a moment
// in between. None of the targets may change meanwhile.
func (t *tally) replace(out, in []*target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range out {
		t.add(o.flags, -1)
	}
	for _, i := range in {
		t.add(i.flags, 1)
	}
	t.sum.Targets += len(in) - len(out)
	t.sum.Loaded = true
}

// stopping records that Stop was called, and reports whether this is the first time.
func (t *tally) stopping() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.sum.Stopping
	t.sum.Stopping = true
	return !was
}

// terminating records that Terminate was called, and reports whether this is the first time.
func (t *tally) terminating() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.sum.Terminating
	t.sum.Terminating = true
	return !was
}

// add counts n targets more under f. The caller holds mu.
func (t *tally) add(f flags, n int) {
	if f.started {
		t.sum.Started += n
	}
	if f.ready {
		t.sum.Ready += n
	}
	if f.live {
		t.sum.Live += n
	}
}

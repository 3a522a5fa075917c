// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"reflect"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// This file decides what a target keeps over a reload: its state and the grid of its probes.

// inherit takes over the state of before, the same target under the former configuration,
// which has retired. It returns the lines to log.
func (t *target) inherit(before *target) []entry {
	before.mu.Lock() // its last turns may still be ending
	defer before.mu.Unlock()
	t.life, t.state = before.life.clone(), before.state
	t.keepExpiries(before)
	t.flags, t.since, t.hourBegan = before.flags, before.since, before.hourBegan
	t.beats.inherit(before)
	last := before.life.seen
	was, is := before.cfg.Instance, t.cfg.Instance
	if keyOf(&was) == keyOf(&is) {
		t.held = before.held
	}
	switch {
	case was.Source == is.Source && is.Source == config.SourceStatic:
		t.source = before.source
	case is.Source == config.SourceStatic && last.Phase == gate.Running:
		t.source = instance.Static{StartedAt: last.StartedAt} // the delays of the instance go on
		t.life.keepFormer(last)
	case keyOf(&was) != keyOf(&is), t.source.Instance(t.cfg.Name).ID != *before.retired:
		t.life.keepFormer(last)
		if hasEnded(last) {
			t.source.Ended(t.cfg.Name)
		}
	}
	inst := t.instance()
	entries := t.recordInstance(inst)
	t.state = t.state.Reconfigure(newState(t.cfg), t.origin(before), inst)
	sameSeries := slices.Equal(before.cfg.Labels, t.cfg.Labels)
	if !sameSeries {
		t.life.restarts = 0
	}
	for _, w := range t.workers {
		was := before.worker(w.kind, w.probe.Name)
		if was == nil {
			continue
		}
		same := sameAction(before.cfg, t.cfg, was.probe, w.probe)
		w.history, w.lastRun = was.history.clone(), was.lastRun
		w.result, w.changed = was.result, was.changed
		if same {
			w.standing = was.standing
		}
		begins := before.cfg.Restart == nil && t.cfg.Restart != nil
		if begins || tookOver(was.state(), w.state()) || !sameRun(was, w) {
			w.history.failures.forget() // the failures of another probe, or of long ago, restart nobody
		}
		w.keepCounts(was, sameSeries)
	}
	return entries
}

// tookOver reports whether a probe says what its list said before a reload, and not what the probe
// itself did.
func tookOver(was, is gate.Probe) bool { return was.Exists && is.Exists && was.Result != is.Result }

// origin says which probe of before each of the target's probes is: the one of the same kind and
// name. The caller holds before.mu.
func (t *target) origin(before *target) func(gate.Kind, int) gate.Origin {
	return func(k gate.Kind, i int) gate.Origin {
		p := t.cfg.Of(k)[i]
		was := before.worker(k, p.Name)
		if was == nil {
			return gate.Origin{}
		}
		return gate.Origin{Found: true, Number: int(was.number), Changed: !sameAction(before.cfg, t.cfg, was.probe, p)}
	}
}

// sameAction reports whether the attempts of p, a probe of a, and q, a probe of b, do the same,
// whatever their period and timeout. The same command in another container is another
// action.
func sameAction(a, b *config.Target, p, q *config.Probe) bool {
	what := func(t *config.Target, p *config.Probe) any {
		only := p.OnlyAction()
		if p.Exec != nil {
			var in config.Instance
			if i := t.Instance; i.Source == config.SourceDocker {
				in = config.Instance{Source: i.Source, Container: i.Container, Label: i.Label, Socket: i.Socket}
			}
			return struct {
				config.Probe
				Env []config.EnvVar
				In  config.Instance
			}{only, t.Env, in}
		}
		return struct {
			config.Probe
			Host string
		}{only, t.Host}
	}
	return reflect.DeepEqual(what(a, p), what(b, q))
}

// sameRun reports whether the run of a probe goes on from one configuration to the other: the
// action and the thresholds are equal.
func sameRun(was, is *worker) bool {
	p, q := was.probe, is.probe
	return sameAction(was.target.cfg, is.target.cfg, p, q) && p.SuccessThreshold == q.SuccessThreshold && p.FailureThreshold == q.FailureThreshold
}

// goesOnFrom reports whether the instance, its phase and started are the same as before the
// reload. If not, the probes have waited for the change and take a turn at once. The caller
// must not hold mu.
func (t *target) goesOnFrom(before *target) bool {
	before.mu.Lock()
	was, started := before.life.seen, before.flags.started
	before.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life.seen.ID == was.ID && t.life.seen.Phase == was.Phase && t.flags.started == started
}

// nextFor returns when is, the worker that a reload has put in the place of w, takes its
// first turn, and where that is between two points of the grid, if is goes on as w would have.
// w may be nil.
func (w *worker) nextFor(is *worker, now time.Time) (first time.Time, between uint32, ok bool) {
	if w == nil || !sameRun(w, is) {
		return time.Time{}, 0, false
	}
	w.target.mu.Lock()
	due, between, quit, poked := w.due, w.between, w.quit, w.poked
	w.target.mu.Unlock()
	switch {
	case quit || due == 0:
		return time.Time{}, 0, false
	case poked:
		return now, 0, true
	}
	is.target.mu.Lock()
	defer is.target.mu.Unlock()
	first, between = is.follow(w.probe, w.target.m.timeOf(due), between, now)
	return first, between, true
}

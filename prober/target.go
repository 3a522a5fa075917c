// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/exec"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// target is one target of a configuration, from Apply until its workers have ended.
type target struct {
	m       *Manager
	cfg     *config.Target
	source  instance.Source
	workers []*worker        // by kind and then in the order of the configuration
	scrub   *output.Scrubber // takes secrets out of outputs

	mu    sync.Mutex
	state gate.Target
	life  life
	beats *beats // nil if there is no heartbeat probe
	flags flags  // as counted in the tally
	since since  // when each flag changed
	held  bool   // as last told to the source
	slots int8   // in use by its probes; guarded by slots.mu
	// instanceChanged says that the instance has changed since the last publication.
	instanceChanged bool
	// hourBegan is when a reload last changed the limits of a probe, in Unix nanoseconds; 0: never.
	hourBegan int64
	// retired is not nil once a reload has replaced or removed the target, which then no
	// longer changes. retired is the source's ID of the instance at that moment.
	retired *string
}

// newTarget returns c as a target whose workers do not run yet, and the lines to log. before,
// which may be nil, has retired; Apply says what the new target keeps of it. The caller holds
// m.swapping.
func newTarget(m *Manager, c *config.Target, source instance.Source, before *target) (t *target, entries []entry) {
	t = &target{
		m:      m,
		cfg:    c,
		source: source,
		life:   life{startup: -1},
		scrub:  NewScrubber(c),
		beats:  newBeats(c, before),
	}
	probes := 0
	for range c.All() {
		probes++
	}
	t.workers = make([]*worker, 0, probes)
	var numbers [gate.NumKinds]uint8
	for k, p := range c.All() {
		w := &worker{
			target:  t,
			kind:    k,
			number:  numbers[k],
			probe:   p,
			stopped: m.terminating && k != gate.Readiness,

			standing: fresh,
			files:    uint8(filesOf(c, p)),
		}
		w.action = w.newAttempt()
		t.workers = append(t.workers, w)
		numbers[k]++
	}
	now := time.Now()
	if before == nil {
		t.state = newState(c)
	} else {
		entries = t.inherit(before)
	}
	inst := t.instance()
	entries = append(entries, t.recordInstance(inst)...)
	t.failEnded(inst, now)
	if before == nil {
		t.flags, t.since = t.flagsOf(inst), sinceAll(now)
	}
	t.derive(inst, now)
	return t, entries
}

// newState returns the state of a target before its first turn.
func newState(c *config.Target) gate.Target {
	var params [gate.NumKinds]gate.Params
	for _, k := range gate.Kinds() {
		if p := c.Probe(k); p != nil {
			params[k] = paramsOf(p)
		}
	}
	state := gate.New(params)
	for _, k := range gate.Kinds() {
		if members := c.Members(k); len(members) > 0 {
			list := make([]gate.Params, len(members))
			for i, p := range members {
				list[i] = paramsOf(p)
			}
			state = state.WithList(k, c.Require(k), list)
		}
	}
	return state
}

// paramsOf returns the numbers of a probe.
func paramsOf(p *config.Probe) gate.Params {
	return gate.Params{
		Configured:       true,
		InitialDelay:     p.InitialDelay,
		SuccessThreshold: p.SuccessThreshold,
		FailureThreshold: p.FailureThreshold,
	}
}

// newAttempt returns what an attempt of the probe does. A command runs inside the target if
// the source can run commands there (kubelet rule 11.5). A heartbeat has the beats of the target.
func (w *worker) newAttempt() action.Func {
	t := w.target
	if w.probe.Heartbeat != nil {
		return w.beat
	}
	if runner := t.source.Runner(); runner != nil && w.probe.Exec != nil {
		return exec.NewIn(runner, t.cfg, w.probe)
	}
	return t.m.newAction(t.cfg, w.probe)
}

// logger returns a logger that names the target. Each call makes a new one: ten thousand
// healthy targets need none.
func (t *target) logger() *slog.Logger { return t.m.log.With("target", t.cfg.Name) }

// worker returns the worker of the probe of a kind that has the name, which is empty for the only
// probe of its kind; nil if there is none.
func (t *target) worker(k gate.Kind, name string) *worker {
	for _, w := range t.workers {
		if w.kind == k && w.probe.Name == name {
			return w
		}
	}
	return nil
}

func (t *target) poke(kinds ...gate.Kind) {
	for _, w := range t.workers {
		if slices.Contains(kinds, w.kind) {
			w.poke()
		}
	}
}

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
	workers []*worker        // in the order of kinds
	scrub   *output.Scrubber // takes secrets out of outputs

	mu    sync.Mutex
	state gate.Target
	life  life
	flags flags // as counted in the tally
	since since // when each flag changed
	held  bool  // as last told to the source
	slots int8  // in use by its probes; guarded by slots.mu
	// instanceChanged says that the instance has changed since the last publication.
	instanceChanged bool
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
		scrub:  output.NewScrubber(c.Secrets()),
	}
	var params [gate.NumKinds]gate.Params
	var changed [gate.NumKinds]bool
	probes := 0
	for _, k := range gate.Kinds() {
		if c.Probe(k) != nil {
			probes++
		}
	}
	t.workers = make([]*worker, 0, probes)
	for _, k := range gate.Kinds() {
		p := c.Probe(k)
		if p == nil {
			continue
		}
		params[k] = gate.Params{
			Configured:       true,
			InitialDelay:     p.InitialDelay,
			SuccessThreshold: p.SuccessThreshold,
			FailureThreshold: p.FailureThreshold,
		}
		changed[k] = before != nil && !sameAction(before.cfg, c, k)
		t.workers = append(t.workers, &worker{
			target:  t,
			kind:    k,
			probe:   p,
			action:  newAttempt(m, c, p, source),
			stopped: m.terminating && k != gate.Readiness,

			standing: fresh,
			files:    uint8(filesOf(c, p)),
		})
	}
	now := time.Now()
	if before == nil {
		t.state = gate.New(params)
	} else {
		entries = t.inherit(before, params, changed)
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

// newAttempt returns what an attempt of a probe does. A command runs inside the target if
// the source can run commands there (kubelet rule 11.5).
func newAttempt(m *Manager, c *config.Target, p *config.Probe, source instance.Source) action.Func {
	if runner := source.Runner(); runner != nil && p.Exec != nil {
		return exec.NewIn(runner, c, p)
	}
	return m.newAction(c, p)
}

// logger returns a logger that names the target. Each call makes a new one: ten thousand
// healthy targets need none.
func (t *target) logger() *slog.Logger { return t.m.log.With("target", t.cfg.Name) }

func (t *target) worker(k gate.Kind) *worker {
	for _, w := range t.workers {
		if w.kind == k {
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"cmp"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// target is one target of the configuration, from when it is applied until its
// workers have ended.
type target struct {
	m       *Manager
	cfg     *config.Target
	source  instance.Source
	workers []*worker        // in the order of kinds
	scrub   *output.Scrubber // takes secrets out of outputs

	mu    sync.Mutex
	state gate.Target
	life  life
	flags flags // as the tally has them
	since since // when each of them changed
	held  bool  // as the source was told
	slots int8  // that its probes have; guarded by slots.mu
	// retired is not nil once a reload has replaced or removed it: nothing changes any
	// more. It is what its source called the instance then.
	retired *string
}

// newTarget returns c as a target whose workers do not run yet, and what is to be logged.
// What it keeps of before, which may be nil and has retired, is said at Apply. Called with
// m.swapping held.
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
			attempt: newAttempt(m, c, p, source),
			stopped: m.terminating && k != gate.Readiness,

			standing: fresh,
			files:    uint8(action.Files(c, p)),
		})
	}
	now := time.Now()
	if before == nil {
		t.state = gate.New(params)
	} else {
		entries = t.inherit(before, params, changed)
	}
	inst := t.instance()
	entries = append(entries, t.meet(inst)...)
	t.settle(inst, now)
	is := t.derive(inst)
	if before == nil {
		t.flags, t.since = is, sinceAll(now)
	}
	t.date(inst, is, now)
	t.flags = is
	t.noteStarted(inst, now)
	t.tellHeld()
	return t, entries
}

// newAttempt returns what an attempt of a probe does. A command runs where the
// source says that the target is, if it can run one there (kubelet rule 11.5).
func newAttempt(m *Manager, c *config.Target, p *config.Probe, source instance.Source) action.Func {
	if runner, ok := source.(action.Runner); ok && p.Exec != nil {
		return action.NewExecIn(runner, c, p)
	}
	return m.newAction(c, p)
}

// inherit takes over from the target's former configuration, which has retired. It
// returns what is to be logged.
func (t *target) inherit(before *target, params [gate.NumKinds]gate.Params, changed [gate.NumKinds]bool) []entry {
	before.mu.Lock() // its last turns may be on their way out
	defer before.mu.Unlock()
	t.life, t.state = before.life.clone(), before.state
	t.flags, t.since = before.flags, before.since
	last := before.life.seen
	was, is := before.cfg.Instance, t.cfg.Instance
	if keyOf(&was) == keyOf(&is) {
		t.held = before.held
	}
	switch {
	case was.Source == is.Source && is.Source == config.SourceStatic:
		t.source = before.source
	case is.Source == config.SourceStatic && last.Phase == gate.Running:
		t.source = instance.Static{StartedAt: last.StartedAt} // its delays go on
		t.life.move(last)
	case keyOf(&was) != keyOf(&is), t.source.Instance(t.cfg.Name).ID != *before.retired:
		t.life.move(last)
		if e, ok := t.source.(ender); ok && hasEnded(last) {
			e.End(t.cfg.Name)
		}
	}
	inst := t.instance()
	entries := t.meet(inst)
	t.state = t.state.Reconfigure(params, changed, inst)
	sameSeries := slices.Equal(before.cfg.Labels, t.cfg.Labels)
	if !sameSeries {
		t.life.restarts = 0
	}
	for _, w := range t.workers {
		was := before.worker(w.kind)
		if was == nil {
			continue
		}
		w.history, w.lastRun = was.history.clone(), was.lastRun
		w.result, w.changed = was.result, was.changed
		if !changed[w.kind] {
			w.standing = was.standing
		}
		if sameSeries {
			w.counts = was.cloneCounts()
		}
	}
	return entries
}

// sameAction reports whether a kind's attempts do the same under both
// configurations; how often and how long they may take is not part of it. The same
// command in another container is another action.
func sameAction(a, b *config.Target, k gate.Kind) bool {
	what := func(t *config.Target) any {
		p := t.Probe(k)
		if p == nil {
			return nil
		}
		only := config.Probe{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket, GRPC: p.GRPC}
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
	return reflect.DeepEqual(what(a), what(b))
}

// sameRun reports whether what a kind's probe counts towards its thresholds goes on from
// one configuration to the other.
func sameRun(a, b *config.Target, k gate.Kind) bool {
	p, q := a.Probe(k), b.Probe(k)
	return sameAction(a, b, k) && p.SuccessThreshold == q.SuccessThreshold && p.FailureThreshold == q.FailureThreshold
}

// logger returns a logger that names the target. It is made when there is something to
// say: ten thousand targets that are well need none.
func (t *target) logger() *slog.Logger { return t.m.log.With("target", t.cfg.Name) }

func (t *target) worker(k gate.Kind) *worker {
	for _, w := range t.workers {
		if w.kind == k {
			return w
		}
	}
	return nil
}

// status returns a copy of all that is known. Called without mu.
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
	if watcher, ok := t.source.(instance.Watcher); ok {
		s.Details = watcher.Describe(t.cfg.Name)
		s.Details.Message = t.scrub.Clean(s.Details.Message, maxMessage)
	}
	return s
}

// overdue returns the names of the probes whose turn is overdue. Called without mu.
func (t *target) overdue(now time.Time) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.workers {
		if w.overdue(now) {
			names = append(names, t.cfg.Name+"/"+w.kind.String())
		}
	}
	return names
}

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
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// target is one target of the configuration, from when it is applied until its
// workers have ended.
type target struct {
	m       *Manager
	cfg     *config.Target
	log     *slog.Logger
	source  instance.Source
	workers []*worker         // in the order of kinds
	scrub   *strings.Replacer // takes secrets out of outputs; nil: there are none

	mu    sync.Mutex
	state gate.Target
	flags flags // as the tally has them
	life  life
}

// life is what is remembered of a target's instances; it survives a reload.
type life struct {
	current  string // ID of the instance that was seen last
	restarts uint64
	// startup is how long the current instance took until started; negative: unknown.
	startup time.Duration

	// declared counts the restarts that were declared of the source's instance of.
	declared   int
	of         string
	declaredAt time.Time
}

// newTarget returns c as a target whose workers do not run yet. What it keeps of
// before, which may be nil and has ended, is said at Apply.
func newTarget(m *Manager, c *config.Target, before *target) *target {
	t := &target{
		m:      m,
		cfg:    c,
		log:    m.log.With("target", c.Name),
		source: instance.Static{StartedAt: time.Now()},
		life:   life{startup: -1},
	}
	if secrets := c.Secrets(); len(secrets) > 0 {
		var pairs []string
		for _, s := range secrets {
			pairs = append(pairs, s, "<redacted>")
		}
		t.scrub = strings.NewReplacer(pairs...)
	}
	var params [gate.NumKinds]gate.Params
	var changed [gate.NumKinds]bool
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
			attempt: m.newAction(c, p),
			log:     t.log.With("probe_type", ProbeType(k)),
		})
	}
	if before == nil {
		t.state = gate.New(params)
	} else {
		t.inherit(before, params, changed)
	}
	inst := t.instance()
	t.life.current = inst.ID
	t.flags = t.derive(inst)
	t.noteStarted(inst, time.Now())
	return t
}

// inherit takes over from the target's former configuration, whose workers have
// ended.
func (t *target) inherit(before *target, params [gate.NumKinds]gate.Params, changed [gate.NumKinds]bool) {
	if reflect.DeepEqual(before.cfg.Instance, t.cfg.Instance) {
		t.source = before.source
	}
	t.life = before.life
	t.state = before.state.Reconfigure(params, changed, t.instance())
	sameSeries := slices.Equal(before.cfg.Labels, t.cfg.Labels)
	if !sameSeries {
		t.life.restarts = 0
	}
	for _, w := range t.workers {
		was := before.worker(w.kind)
		if was == nil {
			continue
		}
		w.history = was.history.clone()
		w.streak, w.reason, w.lastRun = was.streak, was.reason, was.lastRun
		if sameSeries {
			w.counts = was.cloneCounts()
		}
	}
}

// sameAction reports whether a kind's attempts do the same under both
// configurations; how often and how long they may take is not part of it.
func sameAction(a, b *config.Target, k gate.Kind) bool {
	what := func(t *config.Target) any {
		p := t.Probe(k)
		if p == nil {
			return nil
		}
		only := config.Probe{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket, GRPC: p.GRPC}
		if p.Exec != nil {
			return struct {
				config.Probe
				Env []config.EnvVar
			}{only, t.Env}
		}
		return struct {
			config.Probe
			Host string
		}{only, t.Host}
	}
	return reflect.DeepEqual(what(a), what(b))
}

func (t *target) worker(k gate.Kind) *worker {
	for _, w := range t.workers {
		if w.kind == k {
			return w
		}
	}
	return nil
}

// instance returns the instance there is now: the source's, unless somebody has
// declared since that it was restarted. Called with mu held, as all below.
func (t *target) instance() gate.Instance {
	inst := t.source.Instance(t.cfg.Name)
	if t.life.declared > 0 && t.life.of == inst.ID {
		inst.ID += "/" + strconv.Itoa(t.life.declared)
		inst.StartedAt = t.life.declaredAt
	}
	return inst
}

// derive returns the flags of an instance.
func (t *target) derive(inst gate.Instance) flags {
	return flags{started: t.state.Started(inst), ready: t.state.Ready(inst), live: t.state.Live(inst)}
}

// meet takes note of the instance that is seen now. It returns what is to be logged.
func (t *target) meet(inst gate.Instance) (entries []entry) {
	if inst.ID == "" || inst.ID == t.life.current {
		return nil
	}
	if t.life.current != "" {
		t.life.restarts++
	}
	t.life.current, t.life.startup = inst.ID, -1
	for _, w := range t.workers {
		w.streak, w.reason = 0, ""
	}
	return []entry{newEntry(t.log, slog.LevelInfo, "new instance", "instance_id", inst.ID, "restarts", t.life.restarts)}
}

// publish brings the flags and the tally up to date with the state. When the
// instance has just started, the probes that waited for it take a turn at once.
func (t *target) publish(inst gate.Instance, now time.Time) {
	was, is := t.flags, t.derive(inst)
	t.flags = is
	t.noteStarted(inst, now)
	if was == is {
		return
	}
	t.m.tally.move(was, is)
	if is.started && !was.started {
		t.poke(gate.Readiness, gate.Liveness)
	}
}

// noteStarted takes note of how long the instance took until started.
func (t *target) noteStarted(inst gate.Instance, now time.Time) {
	if t.flags.started && t.life.startup < 0 && !inst.StartedAt.IsZero() {
		t.life.startup = max(0, now.Sub(inst.StartedAt))
	}
}

func (t *target) poke(kinds ...gate.Kind) {
	for _, w := range t.workers {
		if slices.Contains(kinds, w.kind) {
			w.poke()
		}
	}
}

// declare begins a new instance on top of what the source says. Called without mu.
func (t *target) declare(now time.Time) {
	t.mu.Lock()
	if of := t.source.Instance(t.cfg.Name).ID; of != t.life.of {
		t.life.of, t.life.declared = of, 0
	}
	t.life.declared++
	t.life.declaredAt = now
	inst := t.instance()
	entries := t.meet(inst)
	t.publish(inst, now)
	t.poke(gate.Startup, gate.Readiness, gate.Liveness)
	t.mu.Unlock()
	logAll(entries)
}

// status returns a copy of all that is known. Called without mu.
func (t *target) status(d Detail, now time.Time) TargetStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	inst := t.instance()
	s := TargetStatus{
		Name:            t.cfg.Name,
		Labels:          slices.Clone(t.cfg.Labels),
		Source:          t.cfg.Instance.Source,
		Instance:        inst,
		Running:         inst.Phase == gate.Running,
		Started:         t.flags.started,
		Ready:           t.flags.ready,
		Live:            t.flags.live,
		Restarts:        t.life.restarts,
		StartupDuration: t.life.startup,
		Probes:          make([]ProbeStatus, len(t.workers)),
	}
	for i, w := range t.workers {
		s.Probes[i] = w.status(d, inst, now)
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

// entry is a line for the log, written once no lock is held.
type entry struct {
	handler slog.Handler
	record  slog.Record
}

// newEntry returns what log would write now.
func newEntry(log *slog.Logger, level slog.Level, message string, args ...any) entry {
	var caller [1]uintptr
	runtime.Callers(2, caller[:])
	e := entry{log.Handler(), slog.NewRecord(time.Now(), level, message, caller[0])}
	e.record.Add(args...)
	return e
}

func logAll(entries []entry) {
	for _, e := range entries {
		if ctx := context.Background(); e.handler.Enabled(ctx, e.record.Level) {
			_ = e.handler.Handle(ctx, e.record) // there is nobody to tell
		}
	}
}

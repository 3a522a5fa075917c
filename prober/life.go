// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// life is what is remembered of a target's instances; it survives a reload.
type life struct {
	seen     gate.Instance // what the source, or a declaration, said last
	current  string        // ID of the instance that was seen last
	restarts uint64
	changes  uint64 // of the instance, and of whether it runs
	// startup is how long the current instance took until started; negative: unknown.
	startup time.Duration

	rare *rare // nil for most targets
}

// rare is what few targets go through.
type rare struct {
	// declared counts the restarts that were declared of the source's instance of.
	declared   int
	of         string
	declaredAt time.Time

	// former is the instance of a source that a reload has replaced. It stands in until
	// the new source has seen the target, and is then taken for the same.
	former gate.Instance
}

// blindHold bounds a hold while a source that would see the next instance sees nothing:
// else a target that was restarted meanwhile, and is well, would be killed until the
// source comes back.
const blindHold = time.Minute

// instance returns the instance there is now: the source's, unless somebody has
// declared since that it was restarted. Called with mu held, as all below but what
// says otherwise.
func (t *target) instance() gate.Instance {
	inst, l := t.source.Instance(t.cfg.Name), &t.life
	if inst.MaxHold == gate.UntilNewInstance && !t.source.Up() {
		inst.MaxHold = blindHold
	}
	r := l.rare
	if r != nil && r.declared > 0 && r.of == inst.From && r.of != "" {
		inst.From = declaredID(r.of, r.declared)
	}
	switch {
	case r != nil && inst.ID == "" && !inst.Final && r.former.ID != "":
		return r.former
	case r != nil && r.declared > 0 && inst.ID != "" && r.of == inst.ID:
		inst.ID, inst.StartedAt, inst.From = declaredID(inst.ID, r.declared), r.declaredAt, ""
	case inst.ID != l.current && inst.StartedAt.IsZero() && hasEnded(inst):
		// It has never run, so it has no results of its own: what would fail at once is
		// what ran before (rule 4.8), and not the boot that is to come (rule 4.19).
		inst.ID, inst.StartedAt = l.current, l.seen.StartedAt
	}
	return inst
}

func declaredID(of string, n int) string { return of + "/" + strconv.Itoa(n) }

// keepFormer goes on under another source.
func (l *life) keepFormer(former gate.Instance) {
	l.rare = &rare{former: former}
}

// clone returns a copy that shares no state.
func (l *life) clone() life {
	c := *l
	if l.rare != nil {
		r := *l.rare
		c.rare = &r
	}
	return c
}

// see takes note of the instance there is now, and fails the probes of one that has ended.
// The caller publishes. It returns what is to be logged.
func (t *target) see(inst gate.Instance, now time.Time) []entry {
	if inst == t.life.seen {
		return nil
	}
	entries := t.recordInstance(inst)
	t.failEnded(inst, now)
	return entries
}

// recordInstance takes note of the instance there is now. It returns what is to be logged.
func (t *target) recordInstance(inst gate.Instance) []entry {
	was := t.life.seen
	if inst == was {
		return nil
	}
	t.dropFormer(inst)
	t.life.seen = inst
	if inst.ID != was.ID || inst.Phase != was.Phase {
		t.life.changes++
		t.instanceChanged = true
	}
	if inst.Phase == gate.Running && !inst.Deleting {
		for _, w := range t.workers {
			w.revive()
		}
	}
	switch {
	case inst.ID == "":
	case inst.ID != t.life.current:
		return t.beginInstance(inst, was)
	case inst.Phase != was.Phase && inst.Phase == gate.Running:
		return t.news(inst, "instance runs")
	case inst.Phase != was.Phase:
		return t.news(inst, "instance does not run", append([]any{"phase", inst.Phase.String()}, t.details()...)...)
	}
	return nil
}

// beginInstance makes an instance the current one: what the probes have to say of the one
// before it ends. was is what was seen last. It returns what is to be logged.
func (t *target) beginInstance(inst, was gate.Instance) []entry {
	l := &t.life
	before := l.current
	l.current = inst.ID
	if !inst.StartedAt.Equal(was.StartedAt) {
		l.startup = -1
	}
	for _, w := range t.workers {
		w.history.failures.forget()
		w.warned = false
		w.renew()
	}
	switch restart := inst.Restart() || inst.From != before; {
	case before == "":
		return nil // the first instance is no news
	case restart:
		l.restarts++
		return t.news(inst, "new instance", "phase", inst.Phase.String(), "restarts", l.restarts)
	case inst.LivenessLag > 0:
		return t.news(inst, "first sign of the instance", "from", inst.From)
	default:
		return t.news(inst, "instance handed over", "from", inst.From)
	}
}

// news returns what is to be logged of an instance.
func (t *target) news(inst gate.Instance, message string, args ...any) []entry {
	return []entry{newEntry(t.logger(), slog.LevelInfo, message, append([]any{"instance_id", inst.ID}, args...)...)}
}

// hasEnded reports whether an instance is known not to run.
func hasEnded(i gate.Instance) bool { return i.Phase == gate.Waiting || i.Phase == gate.Terminated }

// dropFormer ends the time of the former source's instance once the new source has seen the
// target. The two are one life, unless the one had ended and the other runs.
func (t *target) dropFormer(inst gate.Instance) {
	l := &t.life
	if l.rare == nil {
		return
	}
	former := l.rare.former
	if former.ID == "" || inst == former || inst.ID == "" && !inst.Final {
		return
	}
	l.rare.former = gate.Instance{}
	if inst.ID == "" || hasEnded(former) && inst.Phase == gate.Running {
		return
	}
	t.state = t.state.Rename(former.ID, inst.ID)
	if l.current == former.ID {
		l.current = inst.ID
	}
}

// details returns what the log says of an instance beyond its phase.
func (t *target) details() (args []any) {
	d := t.source.Describe(t.cfg.Name)
	if d.ExitCode != nil {
		args = append(args, "exit_code", *d.ExitCode)
	}
	if d.OOMKilled {
		args = append(args, "oom_killed", true)
	}
	if d.Paused {
		args = append(args, "paused", true)
	}
	if d.Message != "" {
		args = append(args, "message", t.scrub.Clean(d.Message, maxMessage))
	}
	return args
}

// failEnded makes the probes say at once what they would say at their next turn of an
// instance that does not run (kubelet rule 4.8).
func (t *target) failEnded(inst gate.Instance, now time.Time) {
	if inst.ID == "" || !hasEnded(inst) {
		return
	}
	for _, w := range t.workers {
		if !w.stopped && !w.quit {
			// What else it comes to, an end above all, is for the turn.
			t.state, _ = t.state.Next(w.kind, inst, false, now)
		}
	}
}

// tellHeld tells the source when a probe begins or ends to wait for a new instance.
func (t *target) tellHeld() {
	held := false
	for _, w := range t.workers {
		p := t.state.Probe(w.kind)
		held = held || p.Held && p.Result == gate.Failure && p.InstanceID == t.life.current
	}
	if held != t.held {
		t.held = held
		t.source.Held(t.cfg.Name, held)
	}
}

// refresh takes note at once of what the source has just seen, and returns what is to be
// logged. Called without mu.
func (t *target) refresh(now time.Time) (entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	inst := t.instance()
	changed := inst != t.life.seen
	if t.retired == nil && (changed || t.source.InDoubt(t.cfg.Name)) {
		if changed {
			entries = t.see(inst, now)
			t.publish(inst, now)
		}
		t.poke(gate.Startup, gate.Readiness, gate.Liveness)
	}
	return entries
}

// declare begins a new instance on top of what the source says; of what it has not
// seen there is none to replace. It returns what is to be logged. Called without mu, of a
// target that has not retired.
func (t *target) declare(now time.Time) []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.life
	switch of := t.source.Instance(t.cfg.Name).ID; {
	case t.source.Declare(t.cfg.Name):
	case of == "":
		if r := l.rare; r != nil && r.former.ID != "" {
			r.former.ID, r.former.StartedAt = declaredID(r.former.ID, 1), now
		}
	default:
		if l.rare == nil {
			l.rare = new(rare)
		}
		r := l.rare
		if of != r.of {
			r.of, r.declared = of, 0
		}
		r.declared++
		r.declaredAt = now
	}
	inst := t.instance()
	entries := t.see(inst, now)
	t.publish(inst, now)
	t.poke(gate.Startup, gate.Readiness, gate.Liveness)
	return entries
}

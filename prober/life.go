// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// life is what a target remembers of its instances; it survives a reload.
type life struct {
	seen     gate.Instance // what the source or a declaration reported last
	current  string        // ID of the last instance
	restarts uint64
	changes  uint64 // of the instance or its phase
	// startup is how long the current instance took until started; negative if unknown.
	startup time.Duration

	rare *rare // nil for most targets
}

// rare is state that only few targets need.
type rare struct {
	// declared counts the restarts declared of the source's instance whose ID is of.
	declared   int
	of         string
	declaredAt time.Time

	// former is the last instance of a source that a reload has replaced. former stands in
	// until the new source sees the target; the target then takes the two for the same.
	former gate.Instance

	expiries []expiry // of the probes that have seen a certificate
}

// blindHold bounds a hold while the source, which would see the next instance, is down.
// Without this bound, a healthy target that was restarted meanwhile would be killed again
// and again until the source comes back.
const blindHold = time.Minute

// instance returns the current instance: the source's, unless somebody has declared a
// restart since. The callers of this method and those below hold mu, unless a comment says
// otherwise.
func (t *target) instance() gate.Instance {
	inst, l := t.source.Instance(t.cfg.Name), &t.life
	if inst.MaxHold == gate.UntilNewInstance && !t.source.Up() {
		inst.MaxHold = blindHold
	}
	if t.cfg.Restart != nil {
		inst.MaxHold = gate.Never // the act may have to wait, and a success withdraws the verdict
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
		// The instance has never run, so it has no results of its own: the probes fail for
		// the instance that ran before (rule 4.8), not for the coming boot (rule 4.19).
		inst.ID, inst.StartedAt = l.current, l.seen.StartedAt
	}
	return inst
}

func declaredID(of string, n int) string { return of + "/" + strconv.Itoa(n) }

// keepFormer makes former stand in until the new source sees the target.
func (l *life) keepFormer(former gate.Instance) {
	was := l.rare
	l.rare = &rare{former: former}
	if was != nil {
		l.rare.expiries = was.expiries
	}
}

// clone returns a copy that shares no state.
func (l *life) clone() life {
	c := *l
	if l.rare != nil {
		r := *l.rare
		r.expiries = slices.Clone(r.expiries)
		c.rare = &r
	}
	return c
}

// see records the current instance, and fails its probes if it has ended. The caller
// publishes. see returns the lines to log.
func (t *target) see(inst gate.Instance, now time.Time) []entry {
	if inst == t.life.seen {
		return nil
	}
	entries := t.recordInstance(inst)
	t.failEnded(inst, now)
	return entries
}

// recordInstance records the current instance. It returns the lines to log.
func (t *target) recordInstance(inst gate.Instance) []entry {
	was := t.life.seen
	if inst == was {
		return nil
	}
	t.dropFormer(inst)
	t.life.seen = inst
	t.instanceChanged = true
	if inst.ID != was.ID || inst.Phase != was.Phase {
		t.life.changes++
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
		t.beats.resume()
		return t.news(inst, "instance runs")
	case inst.Phase != was.Phase:
		return t.news(inst, "instance does not run", append([]any{"phase", inst.Phase.String()}, t.details()...)...)
	}
	return nil
}

// beginInstance makes inst the current instance and ends the probes' streaks. was is what
// the target saw last. beginInstance returns the lines to log.
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
		t.beats.begin(false)
		return nil // the first instance is no news
	case restart:
		t.beats.begin(true)
		l.restarts++
		return t.news(inst, "new instance", "phase", inst.Phase.String(), "restarts", l.restarts)
	case inst.LivenessLag > 0:
		return t.news(inst, "first sign of the instance", "from", inst.From)
	default:
		return t.news(inst, "instance handed over", "from", inst.From)
	}
}

// news returns a log line about an instance.
func (t *target) news(inst gate.Instance, message string, args ...any) []entry {
	return []entry{newEntry(t.logger(), slog.LevelInfo, message, append([]any{"instance_id", inst.ID}, args...)...)}
}

// hasEnded reports whether an instance certainly does not run.
func hasEnded(i gate.Instance) bool { return i.Phase == gate.Waiting || i.Phase == gate.Terminated }

// dropFormer drops the former source's instance once the new source has seen the target. The
// two are one life, unless the former instance had ended and the new one runs. If the former one was
// paused and the new one runs, the results begin anew: a target that was live because it was paused
// must not be dead by a reload.
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
	if former.Phase == gate.Running || inst.Phase != gate.Running {
		t.state = t.state.Rename(former.ID, inst.ID)
	}
	if l.current == former.ID {
		l.current = inst.ID
	}
}

// details returns the attributes that a log line has about an instance beside its phase.
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

// failEnded fails the probes of an instance that does not run, at once and not at their next
// turns (kubelet rule 4.8).
func (t *target) failEnded(inst gate.Instance, now time.Time) {
	if inst.ID == "" || !hasEnded(inst) {
		return
	}
	for _, w := range t.workers {
		if !w.stopped && !w.quit {
			// The next turn acts on the verdict, above all on Quit.
			t.state, _ = t.state.Next(w.kind, int(w.number), inst, false, now)
		}
	}
}

// tellHeld tells the source when the target's probes begin or cease to be held.
func (t *target) tellHeld() {
	held := false
	for _, w := range t.workers {
		p := w.state()
		held = held || p.Held && p.Result == gate.Failure && p.InstanceID == t.life.current
	}
	if held != t.held {
		t.held = held
		t.source.Held(t.cfg.Name, held)
	}
}

// refresh records at once what the source has just seen. It returns the lines to log. The
// caller must not hold mu.
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

// declare begins a new instance in place of the source's. A source that has seen no instance
// has none to replace. declare returns the lines to log. The target has not retired, and the
// caller must not hold mu.
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/heartbeat"
)

// This file gives heartbeat probes their beats, and what they must know of the instance.

// beats is what a target with heartbeat probes remembers beyond its other state.
type beats struct {
	pulses map[beatPlace]*heartbeat.Pulse // does not change

	// The target's mu guards the fields below.

	noticed  time.Time // when the agent first saw the current life
	replaced bool      // that life has replaced another
	resumed  time.Time // when that life last ran again after a pause
}

// beatPlace is where beats come from: a file, or a POST for the probes of that name.
type beatPlace struct{ file, name string }

func placeOf(p *config.Probe) beatPlace {
	if p.Heartbeat.File != "" {
		return beatPlace{file: p.Heartbeat.File}
	}
	return beatPlace{name: p.Name}
}

// newBeats returns the beats of a target; nil if none of its probes is a heartbeat. Beats from the
// places of before, which may be nil, are kept.
func newBeats(c *config.Target, before *target) *beats {
	var b *beats
	for _, p := range c.All() {
		if p.Heartbeat == nil {
			continue
		}
		if b == nil {
			b = &beats{pulses: map[beatPlace]*heartbeat.Pulse{}, noticed: time.Now()}
		}
		place := placeOf(p)
		if before != nil && before.beats != nil {
			b.pulses[place] = before.beats.pulses[place]
		}
		if b.pulses[place] == nil {
			b.pulses[place] = heartbeat.NewPulse()
		}
	}
	return b
}

// inherit takes over what the target before a reload knows of its life. The callers of this method
// and of the next two hold the mu of their target, and b may be nil.
func (b *beats) inherit(before *target) {
	switch {
	case b == nil:
	case before.beats == nil:
		b.replaced = before.life.restarts > 0 // a file may have a beat of another life
	default:
		b.noticed, b.replaced, b.resumed = before.beats.noticed, before.beats.replaced, before.beats.resumed
	}
}

// begin records that the agent has seen another life, which has replaced the former if there was
// one.
func (b *beats) begin(replaced bool) {
	if b != nil {
		b.noticed, b.replaced, b.resumed = time.Now(), replaced, time.Time{}
	}
}

// resume records that the life runs again.
func (b *beats) resume() {
	if b != nil {
		b.resumed = time.Now()
	}
}

// Beat records a beat of a target, for its heartbeat probes that have no file: those of a name, or
// with an empty name those without one. It reports whether there is such a probe. Beat wakes
// nobody: the next attempt will find the beat.
func (m *Manager) Beat(name, probe string) bool {
	t := m.find(name)
	if t == nil || t.beats == nil {
		return false
	}
	pulse := t.beats.pulses[beatPlace{name: probe}]
	if pulse == nil {
		return false
	}
	pulse.Beat()
	return true
}

// beat makes an attempt of a heartbeat probe.
func (w *worker) beat(ctx context.Context) (action.Outcome, error) {
	t := w.target
	t.mu.Lock()
	life := t.lifeOfBeats()
	if w.readyAt != 0 { // a trial has no turn
		life.Due = t.m.timeOf(w.readyAt)
	}
	t.mu.Unlock()
	return t.beats.pulses[placeOf(w.probe)].Attempt(ctx, w.probe, &t.m.looks, life)
}

// lifeOfBeats returns what a heartbeat probe must know of the current instance. The caller holds
// mu.
func (t *target) lifeOfBeats() heartbeat.Life {
	life := heartbeat.Life{Noticed: t.beats.noticed, Replaced: t.beats.replaced, Resumed: t.beats.resumed}
	if t.startIsExact() {
		life.StartedAt = t.life.seen.StartedAt
	}
	return life
}

// startIsExact reports whether the start of the current instance is when its process began. A
// static source and a declaration know only when the agent heard of the target; a listener sees
// sockets, which a process may open long after its first beat. The caller holds mu.
func (t *target) startIsExact() bool {
	if r := t.life.rare; r != nil && (r.declared > 0 || r.former.ID != "") {
		return false
	}
	switch t.cfg.Instance.Source {
	case config.SourceProcess, config.SourceDocker, config.SourceKubernetes:
		return true
	}
	return false
}

// lastBeat returns when the last beat of a probe came; the zero time if the agent knows of none.
func (w *worker) lastBeat() time.Time {
	if w.probe.Heartbeat == nil {
		return time.Time{}
	}
	return w.target.beats.pulses[placeOf(w.probe)].Last()
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// This file applies a configuration: it ends the workers of the old one and starts the new ones.

// Apply makes cfg the configuration. An unchanged target keeps its workers and its whole
// state. A changed target keeps its instance, its published results and, if its labels are
// equal, its counters. Apply cancels the attempts that the new configuration would not make
// and waits up to leaveTime for them; an attempt that goes on after that delays only its
// own probe. The only error is ErrStopping.
func (m *Manager) Apply(cfg *config.Config) error {
	cut, entries, err := m.apply(cfg)
	logAll(entries)
	m.seeOff(cut)
	return err
}

// apply is Apply without the wait. It returns the workers to wait for and the lines to log.
func (m *Manager) apply(cfg *config.Config) (cut []*leaver, entries []entry, err error) {
	m.applying.Lock()
	defer m.applying.Unlock()
	if m.stopping {
		return nil, nil, ErrStopping
	}
	m.mu.Lock()
	before, beforeByName := m.targets, m.byName
	m.mu.Unlock()

	after := make([]*target, len(cfg.Targets))
	byName := make(map[string]*target, len(cfg.Targets))
	configs := make(map[string]*config.Target, len(cfg.Targets))
	var ended, begun []*target
	for i := range cfg.Targets {
		c := &cfg.Targets[i]
		configs[c.Name] = c
		if was := beforeByName[c.Name]; was != nil && sameProbing(was.cfg, c) {
			after[i], byName[c.Name] = was, was
			continue
		}
		byName[c.Name] = nil
	}
	for _, was := range before {
		if byName[was.cfg.Name] == nil {
			ended = append(ended, was)
		}
	}
	m.swapping.Lock()
	cut = m.reconsider(configs)
	for _, was := range ended {
		workers, lines := was.retire(configs[was.cfg.Name])
		cut, entries = append(cut, workers...), append(entries, lines...)
	}
	for i := range cfg.Targets {
		if c := &cfg.Targets[i]; after[i] == nil {
			if len(before) > 0 {
				// A target that outlives the next reloads must not keep this whole file in memory.
				alone := *c
				c = &alone
			}
			t, lines := newTarget(m, c, m.sources.acquire(c), beforeByName[c.Name])
			after[i], byName[c.Name] = t, t
			begun, entries = append(begun, t), append(entries, lines...)
		}
	}

	m.mu.Lock()
	m.targets, m.byName = after, byName
	for _, was := range ended {
		if byName[was.cfg.Name] == nil {
			m.removed = append(m.removed, was.cfg.Name)
		}
	}
	m.removed = slices.DeleteFunc(m.removed, func(name string) bool { return byName[name] != nil })
	m.removed = slices.Clone(m.removed[max(0, len(m.removed)-maxRemoved):])
	m.tally.replace(ended, begun)
	m.mu.Unlock()
	m.swapping.Unlock()
	m.subscriptions.tellAll()

	entries = append(entries, m.sourcesChosen(begun)...)
	m.startAll(begun, beforeByName)
	for _, t := range begun {
		entries = append(entries, t.refresh(time.Now())...) // for what its source saw before the target was in the list
	}
	for _, was := range ended {
		if is := byName[was.cfg.Name]; is == nil || keyOf(&is.cfg.Instance) != keyOf(&was.cfg.Instance) {
			m.sources.release(was.cfg)
		}
	}
	return cut, entries, nil
}

// sameProbing reports whether two configurations of a target are equal but for what only others
// read, so that the target need not change. What a restart block says is for others; that there is
// a block ends the holds after a failure.
func sameProbing(a, b *config.Target) bool {
	if a.Restart == nil || b.Restart == nil {
		return reflect.DeepEqual(a, b)
	}
	x, y := *a, *b
	x.Restart, y.Restart = nil, nil
	return reflect.DeepEqual(x, y)
}

// startAll plans the first turn of every probe. A probe that goes on as before a reload
// stays on its grid, so that no reload brings two attempts closer than a period. Any other
// probe gets a phase: a random wait, short for a few probes, that spreads many of them out.
func (m *Manager) startAll(targets []*target, before map[string]*target) {
	phases := newPhases(targets)
	for _, t := range targets {
		was := before[t.cfg.Name]
		goesOn := was != nil && t.goesOnFrom(was)
		for _, w := range t.workers {
			now := time.Now()
			first, between, ok := time.Time{}, uint32(0), false
			if goesOn {
				first, between, ok = was.worker(w.kind, w.probe.Name).nextFor(w, now)
			}
			if !ok {
				first = m.slotBefore(now.Add(phases.draw(w.probe.Period)), w.probe.Period)
			}
			w.start(first, between)
		}
	}
}

// sourcesChosen returns the lines that say which source the agent has chosen for these
// targets: one line for all targets with the same reason.
func (m *Manager) sourcesChosen(targets []*target) (entries []entry) {
	names := map[string][]string{}
	var whys []*config.Instance
	for _, t := range targets {
		i := &t.cfg.Instance
		if !i.Auto {
			continue
		}
		if names[i.Why] == nil {
			whys = append(whys, i)
		}
		names[i.Why] = append(names[i.Why], t.cfg.Name)
	}
	for _, i := range whys {
		n := names[i.Why]
		entries = append(entries, newEntry(m.log, slog.LevelInfo, "instance source chosen",
			"source", i.Source, "why", i.Why, "count", len(n), "targets", some(n)))
	}
	return entries
}

// some returns the first ten names, for a log line.
func some(names []string) string {
	const most = 10
	return strings.Join(names[:min(len(names), most)], ",")
}

// stopAll ends the workers of the kinds: it stops all of them, then waits for each.
func stopAll(targets []*target, kinds ...gate.Kind) {
	for _, t := range targets {
		for _, w := range t.workers {
			if slices.Contains(kinds, w.kind) {
				w.stop()
			}
		}
	}
	for _, t := range targets {
		for _, w := range t.workers {
			if slices.Contains(kinds, w.kind) {
				w.turns.Wait()
			}
		}
	}
}

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
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// Apply makes cfg the configuration. A target that is equal keeps its workers and
// all that is known of it; a changed one keeps its instance, its published results
// and, where the labels are equal, its counters; the workers of changed and removed
// ones have ended when it returns. It does not fail but with ErrStopping.
func (m *Manager) Apply(cfg *config.Config) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	if m.stopping {
		return ErrStopping
	}
	m.mu.Lock()
	before, beforeByName := m.targets, m.byName
	m.mu.Unlock()

	after := make([]*target, len(cfg.Targets))
	byName := make(map[string]*target, len(cfg.Targets))
	var ended, begun []*target
	for i := range cfg.Targets {
		c := &cfg.Targets[i]
		if was := beforeByName[c.Name]; was != nil && reflect.DeepEqual(was.cfg, c) {
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
	retire(ended)
	for i := range cfg.Targets {
		if c := &cfg.Targets[i]; after[i] == nil {
			if len(before) > 0 {
				// One that outlives the next reloads must not keep all of this file in memory.
				alone := *c
				c = &alone
			}
			after[i] = newTarget(m, c, m.sources.acquire(c), beforeByName[c.Name])
			byName[c.Name] = after[i]
			begun = append(begun, after[i])
		}
	}

	m.mu.Lock()
	m.targets, m.byName = after, byName
	for _, was := range ended {
		if byName[was.cfg.Name] == nil {
			m.removed[was.cfg.Name] = true
		}
	}
	for name := range byName {
		delete(m.removed, name)
	}
	m.tally.replace(ended, begun)
	m.mu.Unlock()
	m.swapping.Unlock()

	for _, t := range begun {
		t.observe(time.Now()) // what its source saw before anybody could be told
	}
	m.logSources(begun)
	m.startAll(begun, beforeByName)
	for _, was := range ended {
		if is := byName[was.cfg.Name]; is == nil || keyOf(&is.cfg.Instance) != keyOf(&was.cfg.Instance) {
			m.sources.release(was.cfg)
		}
	}
	waitAll(ended, gate.Startup, gate.Readiness, gate.Liveness)
	return nil
}

// startAll gives every probe its phase: the first turn comes after a random wait
// that is short for few probes and spreads many of them out. A probe that was there
// before begins once its last attempt has ended: however long that takes, no other
// target waits for it.
func (m *Manager) startAll(targets []*target, before map[string]*target) {
	first := newPhases(targets)
	start := func(t *target) {
		now := time.Now()
		for _, w := range t.workers {
			w.start(m.slotBefore(now.Add(first.take(w.probe.Period)), w.probe.Period))
		}
	}
	ready := make(chan *target)
	waiting := 0
	for _, t := range targets {
		was := before[t.cfg.Name]
		if was == nil || !was.turning() {
			start(t)
			continue
		}
		waiting++
		go func() {
			waitAll([]*target{was}, gate.Startup, gate.Readiness, gate.Liveness)
			ready <- t
		}()
	}
	for range waiting {
		start(<-ready)
	}
}

// logSources says where the instances of these targets come from, one line for all
// that have it for the same reason.
func (m *Manager) logSources(targets []*target) {
	const most = 10 // names a line
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
		m.log.Info("instance source chosen", "source", i.Source, "why", i.Why, "count", len(n), "targets", strings.Join(n[:min(len(n), most)], ","))
	}
}

// retire ends the workers of targets that will be replaced, without waiting for
// them. From now on nothing about them changes.
func retire(targets []*target) {
	for _, t := range targets {
		t.retire(time.Now())
	}
}

// stopAll ends the workers of the kinds: it tells all of them, then waits for each.
func stopAll(targets []*target, kinds ...gate.Kind) {
	for _, t := range targets {
		for _, w := range t.workers {
			if slices.Contains(kinds, w.kind) {
				w.stop()
			}
		}
	}
	waitAll(targets, kinds...)
}

// waitAll waits for workers that have been told to stop.
func waitAll(targets []*target, kinds ...gate.Kind) {
	for _, t := range targets {
		for _, w := range t.workers {
			if slices.Contains(kinds, w.kind) {
				w.turns.Wait()
			}
		}
	}
}

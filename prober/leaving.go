// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// This file ends the workers that a reload replaces or removes, even in the middle of a turn.

// leaveTime is how long a reload waits for the attempts that it has cut short. Most end at
// once; an attempt that has not ended by then may never end (a child that no kill reaches).
const leaveTime = time.Second

// probeName names a probe across reloads.
type probeName struct {
	target string
	kind   gate.Kind
	name   string // of a member of a list
}

// String returns target/kind, or target/kind/name.
func (p probeName) String() string {
	s := p.target + "/" + p.kind.String()
	if p.name != "" {
		s += "/" + p.name
	}
	return s
}

// leaving holds the workers that a reload has replaced or removed in the middle of a turn,
// at most one for each probe: its successor begins once it has ended.
type leaving struct {
	mu sync.Mutex // taken last
	of map[probeName]*leaver
}

type leaver struct {
	*worker
	ended chan struct{} // closed at the end of its turn
	told  bool          // a log line has said that it does not end
	cut   bool          // its attempt has been cut short; guarded by target.mu
}

// add adds a worker in the middle of a turn. The caller holds its target's mu.
func (l *leaving) add(w *worker, cut bool) *leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[probeName]*leaver{}
	}
	is := &leaver{worker: w, cut: cut, ended: make(chan struct{})}
	l.of[w.name()] = is
	return is
}

// remove removes and returns a worker whose turn has ended; nil if leaving does not hold it.
func (l *leaving) remove(w *worker) *leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := w.name()
	if is := l.of[name]; is != nil && is.worker == w {
		delete(l.of, name)
		return is
	}
	return nil
}

// has reports whether a worker of that name has not ended.
func (l *leaving) has(name probeName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[name] != nil
}

// all returns the workers, sorted by name.
func (l *leaving) all() []*leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*leaver, 0, len(l.of))
	for _, is := range l.of {
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b *leaver) int { return strings.Compare(a.name().String(), b.name().String()) })
	return all
}

// tell returns the names of those of the workers that have not ended and that no log line
// has named yet. The caller logs them.
func (l *leaving) tell(of []*leaver) (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, is := range of {
		if l.of[is.name()] == is && !is.told {
			is.told = true
			names = append(names, is.name().String())
		}
	}
	return names
}

// workerEnded handles the end of a stopped worker. If a reload has replaced the worker, its
// successor takes over the last attempt, which may be nil, and begins.
func (m *Manager) workerEnded(w *worker, last *attempt) {
	logAll(m.endLeaver(w, last))
}

func (m *Manager) endLeaver(w *worker, last *attempt) (entries []entry) {
	m.swapping.Lock() // a target that is being replaced right now must not become the heir
	defer m.swapping.Unlock()
	is := m.leaving.remove(w)
	if is == nil {
		return nil
	}
	defer close(is.ended)
	if is.told {
		entries = append(entries, newEntry(w.logger(), slog.LevelInfo, "an attempt that a reload had cut short has ended"))
	}
	if t := m.find(w.target.cfg.Name); t != nil {
		if heir := t.worker(w.kind, w.probe.Name); heir != nil {
			entries = append(entries, heir.takeOver(w, last)...)
		}
	}
	return entries
}

// takeOver starts the worker in the place of before, which has ended, and counts before's
// last attempt, which may be nil. It returns the lines to log.
func (w *worker) takeOver(before *worker, last *attempt) (entries []entry) {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	if w.stopped {
		return nil
	}
	if last != nil {
		before.clean(&last.tried) // the old configuration may have had other secrets
		entries = w.conclude(*last)
	}
	if w.due != 0 && w.timer == nil { // else Apply has yet to start the worker
		now := time.Now()
		first := now
		if !w.poked {
			first, w.between = w.follow(w.probe, w.target.m.timeOf(w.due), w.between, now)
		}
		w.schedule(first, now)
	}
	return entries
}

// reconsider cuts short the attempts that an earlier reload let go on and that the next
// configuration would not make. It returns their workers.
func (m *Manager) reconsider(next map[string]*config.Target) (cut []*leaver) {
	now := time.Now()
	for _, is := range m.leaving.all() {
		t := is.target
		t.mu.Lock()
		if !is.cut && !is.attemptCounts(next[t.cfg.Name], now) {
			is.cut = true
			is.halt(true)
			cut = append(cut, is)
		}
		t.mu.Unlock()
	}
	return cut
}

// attemptCounts reports whether the worker's attempt counts under the next configuration of
// its target, nil for none: next would make the same attempt, and the attempt should not have
// ended long ago. The caller holds target.mu.
func (w *worker) attemptCounts(next *config.Target, now time.Time) bool {
	t := w.target
	if next == nil || w.began == 0 || now.Sub(t.m.timeOf(w.began))-leaveTime > maxTries*w.probe.Timeout {
		return false
	}
	p := next.Named(w.kind, w.probe.Name)
	return p != nil && w.probe.Timeout == p.Timeout && sameAction(t.cfg, next, w.probe, p) && reflect.DeepEqual(t.cfg.Instance, next.Instance)
}

// retire ends the target's workers without waiting for them. next is the target's next
// configuration, or nil. retire returns the workers whose attempts it has cut short and the
// lines to log. From now on the target does not change. The caller must not hold mu.
func (t *target) retire(next *config.Target) (cut []*leaver, entries []entry) {
	now := time.Now()
	entries = t.refresh(now) // the source will tell no more news of this target
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.source.Instance(t.cfg.Name).ID
	t.retired = &id
	for _, w := range t.workers {
		counts := w.attemptCounts(next, now)
		w.halt(!counts)
		switch {
		case counts: // the successor counts from this turn
			at, between := w.next(t.m.timeOf(w.due))
			w.due, w.between = t.m.moment(at), between
			t.m.leaving.add(w, false)
		case w.stage != resting:
			cut = append(cut, t.m.leaving.add(w, true))
		}
	}
	return cut, entries
}

// seeOff waits up to leaveTime for the attempts that this reload has cut short, and logs
// which go on.
func (m *Manager) seeOff(cut []*leaver) {
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	for _, is := range cut {
		select {
		case <-is.ended:
			continue
		case <-timer.C:
		}
		names := m.leaving.tell(cut)
		if len(names) > 0 {
			m.log.Warn("attempts that a reload has cut short do not end: only their own probes wait for them",
				"count", len(names), "probes", some(names))
		}
		return
	}
}

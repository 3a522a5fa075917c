// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Subscription tells one reader that the Status has changed, so that the reader need not
// poll. A Subscription carries no state: the reader asks the Manager and sees the latest.
//
//	s := m.Subscribe()
//	defer s.Close()
//	for {
//		select {
//		case <-s.C:
//			changes := s.Changes()
//			// read m.Status, or m.Target of each of changes.Targets
//		case <-ctx.Done():
//			return
//		}
//	}
//
// No change is lost: a change that comes while the reader reads makes C ready again. Several
// changes before the reader asks count as one. The Manager never waits for a reader, and a
// slow reader costs no more than a fast one.
//
// A change is a change of started, ready or live, of a probe's result or hold, or of anything
// that the source says of the instance; a reload, Stop and Terminate are changes, too. An
// attempt that changes none of these tells no reader but those who are interested in Runs.
type Subscription struct {
	// C is ready at first, and whenever something has changed since the reader last received
	// from C or called Changes. C is never closed.
	C <-chan struct{}

	c    chan struct{} // of capacity 1
	of   *subscriptions
	runs bool // is told of Runs

	// What Changes will return; guarded by of.mu.
	all     bool
	targets map[string]struct{} // nil while empty
}

// Interest is what else a reader wants to be told.
type Interest uint8

// Runs tells of each failure that begins a run of failures, whether or not a result changes.
const Runs Interest = iota

// Changes is what may have changed since the reader last asked.
type Changes struct {
	// All says that anything may have changed: the reader is new, or the set of targets or
	// the state of the agent has changed. Targets is then empty.
	All bool
	// Targets are the sorted names of the targets that have changed. A reload may have
	// removed some of them since.
	Targets []string
}

// subscriptions holds the subscriptions of a Manager. Its lock is held only to write down a
// name, and no other lock is taken meanwhile.
type subscriptions struct {
	count atomic.Int32 // of readers, so that a change costs nothing without readers
	runs  atomic.Int32 // of readers that are told of runs

	mu      sync.Mutex
	readers []*Subscription
}

// Subscribe returns a new subscription. It starts no goroutine, and lasts until its Close.
func (m *Manager) Subscribe(also ...Interest) *Subscription {
	c := make(chan struct{}, 1)
	s := &Subscription{C: c, c: c, of: &m.subscriptions, runs: slices.Contains(also, Runs)}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.readers = append(s.of.readers, s)
	s.of.count.Add(1)
	if s.runs {
		s.of.runs.Add(1)
	}
	s.tellAll()
	return s
}

// Changes returns what may have changed since the last call. A reader that always reads the
// whole Status need not call it.
func (s *Subscription) Changes() Changes {
	s.of.mu.Lock()
	all, targets := s.all, s.targets
	s.all, s.targets = false, nil
	s.drain()
	s.of.mu.Unlock()
	return Changes{All: all, Targets: slices.Sorted(maps.Keys(targets))}
}

// Close ends the subscription: C is not ready any more. A second call does nothing.
func (s *Subscription) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if i := slices.Index(s.of.readers, s); i >= 0 {
		s.of.readers = slices.Delete(s.of.readers, i, i+1)
		s.of.count.Add(-1)
		if s.runs {
			s.of.runs.Add(-1)
		}
	}
	s.drain()
}

// tell tells the readers that a target has changed. The caller has made the change and may
// hold the target's lock: a reader then waits for the lock and sees the change.
func (s *subscriptions) tell(target string) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		r.tell(target)
	}
}

// tellRun tells those who are interested that a run of failures of a target has begun. The
// caller is that of tell.
func (s *subscriptions) tellRun(target string) {
	if s.runs.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		if r.runs {
			r.tell(target)
		}
	}
}

// tellAll tells the readers that anything may have changed.
func (s *subscriptions) tellAll() {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		r.tellAll()
	}
}

// The callers of the methods below hold of.mu.

func (s *Subscription) tell(target string) {
	if !s.all {
		if s.targets == nil {
			s.targets = map[string]struct{}{}
		}
		s.targets[target] = struct{}{}
	}
	s.wake()
}

// tellAll records that anything may have changed, and drops the names: there are never many
// more of them than the configuration has targets.
func (s *Subscription) tellAll() {
	s.all, s.targets = true, nil
	s.wake()
}

// wake makes C ready.
func (s *Subscription) wake() {
	select {
	case s.c <- struct{}{}:
	default: // C is ready already
	}
}

// drain makes C not ready.
func (s *Subscription) drain() {
	select {
	case <-s.c:
	default:
	}
}

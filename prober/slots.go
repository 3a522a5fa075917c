// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// This file decides which turn may make its attempt when there is no room for all at once.

// patience is how many waiters may pass the one that has waited longest.
const patience = 7

// load is how many attempts are in flight and how many files they may have open.
type load struct{ attempts, files int }

// fits reports whether one more attempt fits within a limit. The first always fits.
func (l load) fits(files int, limit load) bool {
	return l.attempts == 0 || l.attempts < limit.attempts && l.files+files <= limit.files
}

// slots bounds how many attempts are in flight and decides who goes next. A turn that finds
// room goes at once. Among waiting turns, those of probes whose last attempts were answered
// go first, and a target with no slot goes before a target that has one. Every eighth to go
// is the turn that has waited longest, so that no turn waits for ever. Probes that hung before
// never take all slots.
//
// A turn costs the same for any number of waiting probes.
type slots struct {
	limit [numClasses]load

	mu     sync.Mutex
	used   [numClasses]load // by a class and the classes after it
	queues [numClasses]list.List
	// aside holds the waiters whose target had a slot when they were first in their queue.
	// They go if no other waiter can, and return to the front of their queue when their
	// target has no slot.
	aside    [numClasses]list.List
	byTarget map[*target][]*waiter // the waiters in aside
	waiting  int
	moved    time.Time // when the first waiter came or, since then, a slot came free
	arrived  uint64
	passed   int // waiters that went since the one that had waited longest
}

// waiter is a turn that waits for its slot.
type waiter struct {
	claim
	number  uint64        // in the order of arrival
	granted chan struct{} // closed when the waiter has its slot
	in      *list.List    // nil when the waiter no longer waits
	element *list.Element
}

// claim is what an attempt takes of the slots.
type claim struct {
	target *target
	files  int
	class  class
}

func newSlots(limit load) *slots {
	s := &slots{byTarget: map[*target][]*waiter{}}
	for c := range s.limit {
		s.limit[c] = load{attempts: limit.attempts * shares[c] / shares[0], files: limit.files * shares[c] / shares[0]}
	}
	return s
}

// claim returns what the next attempt takes. The caller holds target.mu.
func (w *worker) claim() claim {
	return claim{target: w.target, files: int(w.files), class: w.standing.class()}
}

// tryAcquire takes a slot if there is room and no turn waits.
func (s *slots) tryAcquire(want claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 || !s.within(want) || !s.room(want) {
		return false
	}
	s.occupy(want, 1)
	return true
}

// acquire waits for a slot, and reports whether there was one before ctx was done.
func (s *slots) acquire(ctx context.Context, want claim) bool {
	s.mu.Lock()
	if s.arrived++; s.waiting == 0 {
		s.moved = time.Now()
	}
	s.waiting++
	w := &waiter{claim: want, number: s.arrived, granted: make(chan struct{})}
	w.enqueue(&s.queues[want.class], (*list.List).PushBack)
	s.serve()
	s.mu.Unlock()

	select {
	case <-w.granted:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.in == nil { // the slot came at the same moment
		s.vacate(want)
	} else {
		s.remove(w)
	}
	s.serve()
	return false
}

// release gives a slot back.
func (s *slots) release(had claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacate(had)
	s.serve()
}

// stalled returns how long the waiters have seen no slot come free. The caller knows that
// there are waiters.
func (s *slots) stalled(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.moved)
}

// The callers of all methods below hold mu.

// within reports whether want is within what its class may take, whatever is left.
func (s *slots) within(want claim) bool {
	for c := answering + 1; c <= want.class; c++ {
		if !s.used[c].fits(want.files, s.limit[c]) {
			return false
		}
	}
	return true
}

// room reports whether a slot is left at all.
func (s *slots) room(want claim) bool {
	return s.used[answering].fits(want.files, s.limit[answering])
}

// occupy adds a slot to those in use, or removes it if sign is -1.
func (s *slots) occupy(what claim, sign int) {
	for c := range what.class + 1 {
		s.used[c].attempts += sign
		s.used[c].files += sign * what.files
	}
	what.target.slots += int8(sign)
}

// vacate gives a slot back. If its target has no other, the waiters of the target return from
// aside to their queues.
func (s *slots) vacate(had claim) {
	s.occupy(had, -1)
	if s.waiting == 0 {
		return
	}
	s.moved = time.Now()
	if had.target.slots > 0 {
		return
	}
	back := s.byTarget[had.target]
	delete(s.byTarget, had.target)
	for i := range back {
		w := back[len(back)-1-i] // the first ends up in front
		w.dequeue()
		w.enqueue(&s.queues[w.class], (*list.List).PushFront)
	}
}

// serve gives slots to waiters until no slot or no waiter is left.
func (s *slots) serve() {
	for s.waiting > 0 {
		w := s.next()
		if w == nil || !s.room(w.claim) {
			return // the next room is for w: a waiter that needs many files must not wait for ever
		}
		if s.passed >= patience {
			s.passed = 0
		} else {
			s.passed++
		}
		s.remove(w)
		s.occupy(w.claim, 1)
		close(w.granted)
	}
}

// next returns the waiter that goes next; nil if every class has taken all it may.
func (s *slots) next() *waiter {
	if s.passed >= patience {
		if w := s.oldest(); w != nil {
			return w
		}
	}
	for c := range numClasses {
		if w := s.front(c); w != nil && s.within(w.claim) {
			return w
		}
	}
	for c := range numClasses {
		if first := s.aside[c].Front(); first != nil {
			if w := first.Value.(*waiter); s.within(w.claim) { //nolint:forcetypeassert // as enqueue has it
				return w
			}
		}
	}
	return nil
}

// oldest returns the waiter that has waited longest of those that may go.
func (s *slots) oldest() (oldest *waiter) {
	for c := range numClasses {
		if w := s.front(c); w != nil && s.within(w.claim) && (oldest == nil || w.number < oldest.number) {
			oldest = w
		}
	}
	return oldest
}

// front returns the first waiter of a class whose target has no slot, and puts those before
// it aside.
func (s *slots) front(c class) *waiter {
	for first := s.queues[c].Front(); first != nil; first = s.queues[c].Front() {
		w := first.Value.(*waiter) //nolint:forcetypeassert // as enqueue has it
		if w.target.slots == 0 {
			return w
		}
		w.dequeue()
		w.enqueue(&s.aside[c], (*list.List).PushBack)
		s.byTarget[w.target] = append(s.byTarget[w.target], w)
	}
	return nil
}

// remove removes a waiter from its queue or from aside.
func (s *slots) remove(w *waiter) {
	s.waiting--
	w.dequeue()
	aside := s.byTarget[w.target]
	for i := range aside {
		if aside[i] != w {
			continue
		}
		if len(aside) == 1 {
			delete(s.byTarget, w.target)
		} else {
			s.byTarget[w.target] = append(aside[:i:i], aside[i+1:]...)
		}
		return
	}
}

func (w *waiter) enqueue(l *list.List, at func(l *list.List, v any) *list.Element) {
	w.in, w.element = l, at(l, w)
}

func (w *waiter) dequeue() {
	w.in.Remove(w.element)
	w.in, w.element = nil, nil
}

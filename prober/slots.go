// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// This file decides which turn may make its attempt where not all can at once.

// patience is how many may go before one who has waited longer.
const patience = 7

// load is what attempts in flight take.
type load struct{ attempts, files int }

// fits says whether one more attempt fits within a limit. A first one always does.
func (l load) fits(files int, limit load) bool {
	return l.attempts == 0 || l.attempts < limit.attempts && l.files+files <= limit.files
}

// slots bound how many attempts are in flight, and share that out. Who finds room goes at
// once. Where attempts wait, those go first whose last ones were answered, and a target
// has one slot at most; each eighth to go is the one that has waited longest, so that
// everyone does in the end. Attempts that hung before never take all there is.
//
// A turn costs the same however many probes wait.
type slots struct {
	limit [numClasses]load

	mu     sync.Mutex
	used   [numClasses]load // by a class and those after it
	queues [numClasses]list.List
	// aside are those whose target had a slot when it was their time. They go if nobody
	// else can, or are the first of their class again when the target has none.
	aside    [numClasses]list.List
	byTarget map[*target][]*waiter // those aside
	waiting  int
	moved    time.Time // when somebody began to wait, or a slot came free for who does
	arrived  uint64
	passed   int // have gone since the longest wait was ended
}

// waiter is a turn that waits for its slot.
type waiter struct {
	claim
	number  uint64        // in the order of arrival
	granted chan struct{} // closed when it has its slot
	in      *list.List    // nil when it waits no more
	element *list.Element
}

// claim is what an attempt takes.
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

// claim returns what the next attempt takes. With target.mu held.
func (w *worker) claim() claim {
	return claim{target: w.target, files: int(w.files), class: w.standing.class()}
}

// tryAcquire takes a slot if there is room and nobody waits.
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
	if w.in == nil { // it came at the same moment
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

// stalled returns for how long those who wait have seen no slot come free.
func (s *slots) stalled(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.moved)
}

// All below is called with mu held.

// within says whether a slot is within what its class may take, whatever is left.
func (s *slots) within(want claim) bool {
	for c := answering + 1; c <= want.class; c++ {
		if !s.used[c].fits(want.files, s.limit[c]) {
			return false
		}
	}
	return true
}

// room says whether a slot is left for anyone.
func (s *slots) room(want claim) bool {
	return s.used[answering].fits(want.files, s.limit[answering])
}

// occupy adds a slot to what is taken, or with -1 takes it away.
func (s *slots) occupy(what claim, sign int) {
	for c := range what.class + 1 {
		s.used[c].attempts += sign
		s.used[c].files += sign * what.files
	}
	what.target.slots += int8(sign)
}

// vacate gives a slot back, and those of its target that were put aside their places.
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
		w := back[len(back)-1-i] // the first comes to the front
		w.dequeue()
		w.enqueue(&s.queues[w.class], (*list.List).PushFront)
	}
}

// serve gives slots to those who wait, as long as there are any.
func (s *slots) serve() {
	for s.waiting > 0 {
		w := s.next()
		if w == nil || !s.room(w.claim) {
			return // what comes free is for w: one that needs more must not wait for ever
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

// next returns who goes next: nil if nobody is within what its class may take.
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

// oldest returns who has waited longest of those who may go.
func (s *slots) oldest() (oldest *waiter) {
	for c := range numClasses {
		if w := s.front(c); w != nil && s.within(w.claim) && (oldest == nil || w.number < oldest.number) {
			oldest = w
		}
	}
	return oldest
}

// front returns the first of a class whose target has no slot. It puts the others aside:
// once for each slot that a target takes.
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

// remove takes one who waits no more out of wherever it is.
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

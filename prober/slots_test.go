// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queue holds claims that wait in a bubble and record when they get their slots.
type queue struct {
	t *testing.T
	*slots

	saying sync.Mutex
	said   []string
}

func (q *queue) wait(ctx context.Context, name string, want claim) {
	q.t.Helper()
	go func() {
		if q.acquire(ctx, want) {
			q.saying.Lock()
			defer q.saying.Unlock()
			q.said = append(q.said, name)
		}
	}()
	synctest.Wait()
}

// served returns which claims have got a slot since the last call.
func (q *queue) served() (names []string) {
	synctest.Wait()
	q.saying.Lock()
	defer q.saying.Unlock()
	names, q.said = q.said, nil
	slices.Sort(names)
	return names
}

func (q *queue) is(want ...string) {
	q.t.Helper()
	if got := q.served(); !slices.Equal(got, want) {
		q.t.Errorf("slots went to %v, want %v", got, want)
	}
}

// Probes that were answered go first, then new probes, then probes that hang. Within a class,
// the first to come goes first.
func TestWhoGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, slots: newSlots(load{attempts: 1, files: 1})}
		first := claim{target: new(target), files: 1}
		q.tryAcquire(first)
		var waiting []claim
		for i, c := range []class{hanging, doubtful, answering, doubtful, answering, hanging} {
			next := claim{target: new(target), files: 1, class: c}
			q.wait(t.Context(), fmt.Sprint(i), next)
			waiting = append(waiting, next)
		}
		if q.tryAcquire(claim{target: new(target), files: 1}) {
			t.Error("a newcomer passed those that wait")
		}
		q.is()
		q.release(first)
		for _, i := range []int{2, 4, 1, 3, 0, 5} {
			q.is(fmt.Sprint(i))
			q.release(waiting[i])
		}
		q.empty()
	})
}

// empty checks that no slot is taken and no claim waits.
func (q *queue) empty() {
	q.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used != [numClasses]load{} || q.waiting != 0 || len(q.byTarget) != 0 {
		q.t.Errorf("%v are taken, %d wait, %d are aside; want none", q.used, q.waiting, len(q.byTarget))
	}
}

// While other targets wait, a target has one slot. If no other target waits, or none may go,
// the target has as many slots as there are.
func TestOneSlotATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, slots: newSlots(load{attempts: 2, files: 2})}
		a, b := new(target), new(target)
		all := claim{target: new(target), files: 2}
		q.tryAcquire(all)
		of := func(target *target) claim { return claim{target: target, files: 1} }
		q.wait(t.Context(), "a1", of(a))
		q.wait(t.Context(), "a2", of(a))
		q.wait(t.Context(), "a3", of(a))
		q.wait(t.Context(), "b1", of(b))
		q.release(all)
		q.is("a1", "b1")
		q.wait(t.Context(), "b2", of(b))
		q.release(of(b))
		q.is("b2") // not a2
		q.release(of(a))
		q.is("a2") // a2 came before b
		q.release(of(b))
		q.is("a3") // no other target waits
		q.wait(t.Context(), "b3", of(b))
		q.release(of(a))
		q.is("b3")
		q.release(of(a))
		q.release(of(b))
		q.empty()
	})
}

// Every eighth turn to go is the turn that has waited longest. However many turns are answered
// meanwhile, a turn that hangs or needs many files gets a slot in the end.
func TestNobodyIsPassedForEver(t *testing.T) {
	for what, patient := range map[string]claim{
		"one that hangs":     {files: 1, class: hanging},
		"one that needs all": {files: 4, class: hanging},
		"one of many files":  {files: 4, class: answering},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := &queue{t: t, slots: newSlots(load{attempts: 4, files: 4})}
			one := func() claim { return claim{target: new(target), files: 1} }
			var running []claim
			for range 4 {
				running = append(running, one())
				q.tryAcquire(running[len(running)-1])
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			patient.target = new(target)
			q.wait(ctx, "patient", patient)
			for n := 0; ; n++ {
				if n > 3*patience {
					t.Fatalf("%s was passed %d times", what, n)
				}
				next := one()
				q.wait(ctx, "other", next)
				running = append(running, next)
				q.release(running[0])
				running = running[1:]
				served := q.served()
				if len(served) == 0 { // the free slots are reserved for the patient claim
					for _, r := range running[:3] {
						q.release(r)
					}
					served = q.served()
				}
				if slices.Contains(served, "patient") {
					return
				}
			}
		})
	}
}

// Claims come, go and give up at random. No class takes more than its share, a target has one
// slot while others may go, every waiter gets a slot within a bound, and no claim is left in
// the end.
func TestSlotsAmongAnything(t *testing.T) {
	for range 20 {
		synctest.Test(t, testSlotsAmongAnything)
	}
}

func testSlotsAmongAnything(t *testing.T) {
	s := newSlots(load{attempts: 1 + rand.IntN(12), files: 1 + rand.IntN(16)})
	targets := make([]*target, 1+rand.IntN(30))
	for i := range targets {
		targets[i] = new(target)
	}
	var all sync.WaitGroup
	for i := range 3 * len(targets) {
		c := claim{target: targets[i/3], files: 1 + rand.IntN(2), class: class(rand.IntN(int(numClasses)))}
		all.Go(func() {
			for range 30 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(5) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(50))*10*ms, cancel)
				}
				begin := time.Now()
				if s.tryAcquire(c) || s.acquire(ctx, c) {
					s.check(t)
					time.Sleep(time.Duration(rand.IntN(10)) * 10 * ms)
					s.release(c)
				}
				if waited := time.Since(begin); waited > 10*time.Minute {
					t.Errorf("%v of waiting for a slot", waited)
				}
				cancel()
				time.Sleep(time.Duration(rand.IntN(10)) * 10 * ms)
			}
		})
	}
	all.Wait()
	(&queue{t: t, slots: s}).empty()
	for _, target := range targets {
		if target.slots != 0 {
			t.Errorf("a target has %d slots, want none", target.slots)
		}
	}
}

// check checks the rules that hold at any moment.
func (s *slots) check(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, used := range s.used {
		if used.attempts > 1 && (used.attempts > s.limit[c].attempts || used.files > s.limit[c].files) {
			t.Errorf("class %d and those after it take %v of %v", c, used, s.limit[c])
		}
	}
	waiting := len(s.byTarget)
	for c := range numClasses {
		waiting += s.queues[c].Len()
	}
	if waiting == 0 && s.waiting != 0 {
		t.Errorf("%d claims wait in no queue", s.waiting)
	}
	if s.waiting > 0 {
		if w := s.next(); w != nil && s.room(w.claim) {
			t.Error("a claim waits although there is a slot")
		}
	}
}

// If a slot comes just after its turn has given up, another turn can have the slot.
func TestSlotComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(load{attempts: 1, files: 1})
		first, second := claim{target: new(target), files: 1}, claim{target: new(target), files: 1}
		s.tryAcquire(first)
		ctx, cancel := context.WithCancel(t.Context())
		took := make(chan bool, 1)
		go func() { took <- s.acquire(ctx, second) }()
		synctest.Wait()
		s.mu.Lock() // so the claim cannot take note of its end
		cancel()
		s.vacate(first)
		s.serve()
		s.mu.Unlock()
		if <-took {
			t.Error("a turn that was given up has a slot")
		}
		(&queue{t: t, slots: s}).empty()
	})
}

// BenchmarkSlots measures a turn's slot while that many other turns wait for slots.
func BenchmarkSlots(b *testing.B) {
	for _, waiting := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			s := newSlots(load{attempts: 8, files: 8})
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for range 4 {
				s.tryAcquire(claim{target: new(target), files: 1, class: hanging})
			}
			for range waiting {
				all.Go(func() { s.acquire(ctx, claim{target: new(target), files: 1, class: hanging}) })
			}
			for ready := false; !ready; {
				s.mu.Lock()
				ready = s.waiting == waiting
				s.mu.Unlock()
			}
			mine := claim{target: new(target), files: 1}
			b.ReportAllocs()
			for b.Loop() {
				if s.tryAcquire(mine) || s.acquire(ctx, mine) {
					s.release(mine)
				}
			}
			cancel()
			all.Wait()
		})
	}
}

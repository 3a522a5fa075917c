// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// turn is what the timer calls: it takes the turn that is due and, in the same
// goroutine, those that are due when the one before them ends.
func (w *worker) turn() {
	for w.takeTurn() {
	}
}

// takeTurn is the worker's time to act. It reports whether the next turn is due.
func (w *worker) takeTurn() (again bool) {
	defer w.turns.Done()
	t, m := w.target, w.target.m
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	begun, ok := w.begin(ctx, cancel)
	if !ok {
		m.leave(w, nil)
		return false
	}

	var made tried
	attempted := begun.verdict == gate.Attempt
	if attempted {
		made = w.try(ctx)
		m.slots.release(begun.slot)
	}
	ended := time.Now()
	if attempted && (begun.first || !made.Success) {
		w.look(ctx, made)
	}

	var entries []entry
	var last *bequest
	t.mu.Lock()
	switch {
	case !attempted || ctx.Err() != nil:
	case t.retired != nil:
		last = &bequest{made, begun.changes, begun.at, ended}
	default:
		entries = w.fold(made, begun.changes, begun.at, ended)
		w.stand(made, begun.changes, ended.Sub(begun.at))
	}
	stopped := w.stopped
	w.stage, w.cancel, w.began = resting, nil, 0
	if now := time.Now(); !w.stopped && !w.quit {
		due := w.next(now)
		if again = !due.After(now); again {
			// A timer would only wake another thread for it.
			w.due, w.readyAt = m.moment(due), m.moment(now)
			w.turns.Add(1)
		} else {
			w.schedule(due, now)
		}
	}
	t.mu.Unlock()
	logAll(entries)
	if stopped {
		m.leave(w, last)
	}
	return again
}

// begun is a turn that has begun.
type begun struct {
	at      time.Time
	verdict gate.Verdict
	slot    claim  // taken, if it is an attempt
	changes uint64 // of the instance so far
	first   bool   // no attempt has succeeded yet
}

// begin begins a turn, once there is a slot if it is to make an attempt: who only looks
// at the instance waits for nobody. It returns false if the worker was stopped before.
func (w *worker) begin(ctx context.Context, cancel context.CancelFunc) (b begun, ok bool) {
	t, m := w.target, w.target.m
	for held := false; ; {
		t.mu.Lock()
		if w.stopped {
			t.mu.Unlock()
			if held {
				m.slots.release(b.slot)
			}
			return b, false
		}
		w.stage, w.cancel = acting, cancel
		now, inst := time.Now(), t.instance()
		entries := t.meet(inst)
		state, verdict := t.state.Next(w.kind, inst, t.state.Started(inst), now)
		if verdict == gate.Attempt && !held {
			b.slot = w.claim()
			if held = m.slots.tryTake(b.slot); !held {
				wait, stop := context.WithCancel(ctx)
				w.stage, w.cancel = waiting, stop
				t.mu.Unlock()
				logAll(entries)
				held = m.slots.take(wait, b.slot)
				stop()
				if ctx.Err() == nil || held {
					continue // much may have changed, the probe's standing for one
				}
				return b, false
			}
		}
		m.observeLateness(now.Sub(m.timeOf(w.readyAt)))
		if w.poked {
			w.poked, w.due = false, m.moment(m.slotAfter(now, w.probe.Period))
		}
		t.state = state
		switch verdict {
		case gate.Wait:
		case gate.Quit:
			// What it said last can still be read; it does not count any more (rule 5.6).
			last := t.state.Probe(w.kind)
			t.state = t.state.Remove(w.kind).Adopt(w.kind, gate.Instance{ID: last.InstanceID}, last.Result)
			w.quit = true
		case gate.Attempt:
			w.began = m.moment(now)
		}
		t.publish(inst, now)
		w.poked = false // this is the turn that it would ask for
		b.at, b.verdict, b.changes, b.first = now, verdict, t.life.changes, w.successful.count() == 0
		t.mu.Unlock()
		logAll(entries)
		if held && verdict != gate.Attempt {
			m.slots.release(b.slot)
		}
		return b, true
	}
}

func (m *Manager) observeLateness(d time.Duration) {
	m.latenessMu.Lock()
	defer m.latenessMu.Unlock()
	m.lateness.Observe(d)
}

const (
	// maxLook bounds what a look may take from the next turn.
	maxLook = time.Second
	// lookAgain is how long the system may take to let go of a process: its connections
	// may break before its listening sockets are gone.
	lookAgain = 100 * time.Millisecond
)

// look has the source take a fresh look, if it can; twice, if the attempt ended as it
// does when the process at the other end dies.
func (w *worker) look(ctx context.Context, made tried) {
	l, ok := w.target.source.(looker)
	if !ok {
		return
	}
	if s, ok := l.(misser); ok && made.outcome() == Failed {
		s.Missed(w.target.cfg.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, max(lookAgain+lookAgain/2, min(w.probe.Timeout, maxLook)))
	defer cancel()
	was := w.target.source.Instance(w.target.cfg.Name)
	l.Look(ctx)
	switch made.Reason {
	case action.ConnectionReset, action.HTTPProtocol, action.TLS, action.GRPCStatus, action.Other:
	default:
		return
	}
	if w.target.source.Instance(w.target.cfg.Name) != was {
		return
	}
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	select {
	case <-again.C:
		l.Look(ctx)
	case <-ctx.Done():
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// turn is a worker's turn as it began: the gate's verdict, the instance, and the slot of the
// attempt.
type turn struct {
	at      time.Time
	verdict gate.Verdict
	slot    claim  // taken, if the verdict is an attempt
	changes uint64 // life.changes when the turn began
	first   bool   // no attempt has succeeded yet
}

// takeTurns takes the turn that is due and then, in the same goroutine, each turn that is due
// when the one before it ends. The timer calls takeTurns.
func (w *worker) takeTurns() {
	for w.takeTurn() {
	}
}

// takeTurn takes one turn: it asks the gate, makes the attempt if the gate wants one, counts
// the attempt, and plans the next turn. It reports whether the next turn is already due.
func (w *worker) takeTurn() (again bool) {
	defer w.turns.Done()
	ctx, cancel := context.WithCancel(w.target.m.ctx)
	defer cancel()
	begun, ok := w.beginTurn(ctx, cancel)
	if !ok {
		w.rest() // or a reload would take the worker for one that still acts
		w.target.m.workerEnded(w, nil)
		return false
	}
	if begun.verdict != gate.Attempt {
		return w.endTurn(ctx, nil)
	}
	made := w.makeAttempt(ctx, begun)
	return w.endTurn(ctx, &made)
}

// beginTurn asks the source and the gate what to do. If the turn makes an attempt, beginTurn
// waits for a slot; a turn without an attempt does not wait. beginTurn returns false if the
// worker was stopped before.
func (w *worker) beginTurn(ctx context.Context, cancel context.CancelFunc) (begun turn, ok bool) {
	t, slots := w.target, w.target.m.slots
	var slot claim
	for held := false; ; {
		t.mu.Lock()
		if w.stopped {
			t.mu.Unlock()
			if held {
				slots.release(slot)
			}
			return turn{}, false
		}
		w.stage, w.cancel = acting, cancel
		now, inst := time.Now(), t.instance()
		entries := t.see(inst, now)
		state, verdict := t.state.Next(w.kind, int(w.number), inst, t.state.Started(inst), now)
		if verdict == gate.Attempt && !held {
			slot = w.claim()
			held = slots.tryAcquire(slot)
		}
		if verdict == gate.Attempt && !held {
			wait, stop := context.WithCancel(ctx)
			w.stage, w.cancel = waiting, stop
			poked := w.poked
			t.publish(inst, now) // the failures of one instance must not count for the next while the turn waits
			w.poked = poked      // this is the turn that a poke would ask for
			t.mu.Unlock()
			logAll(entries)
			held = slots.acquire(wait, slot)
			stop()
			if ctx.Err() != nil && !held {
				return turn{}, false
			}
			continue // much may have changed, for example the probe's standing
		}
		begun = w.enterTurn(inst, state, verdict, now)
		t.mu.Unlock()
		logAll(entries)
		if held && verdict != gate.Attempt {
			slots.release(slot)
		}
		begun.slot = slot
		return begun, true
	}
}

// enterTurn stores the state that the gate returned, and publishes it. The caller holds
// target.mu.
func (w *worker) enterTurn(inst gate.Instance, state gate.Target, verdict gate.Verdict, now time.Time) turn {
	t, m := w.target, w.target.m
	m.observeLateness(now.Sub(m.timeOf(w.readyAt)))
	if w.poked {
		w.due, w.between = m.moment(m.slotAfter(now, w.probe.Period)), 0
	}
	t.state = state
	switch verdict {
	case gate.Wait:
	case gate.Quit:
		// The last result can still be read, but no longer counts (rule 5.6).
		last, i := w.state(), int(w.number)
		t.state = t.state.Remove(w.kind, i).Adopt(w.kind, i, gate.Instance{ID: last.InstanceID}, last.Result)
		w.quit = true
	case gate.Attempt:
		w.began = m.moment(now)
	}
	t.publish(inst, now)
	w.poked = false // this is the turn that a poke would ask for
	return turn{at: now, verdict: verdict, changes: t.life.changes, first: w.successful.count() == 0}
}

// makeAttempt makes the attempt of a turn and gives its slot back. If the attempt has not
// succeeded, or is the first success, the source looks at the instance before the attempt
// counts.
func (w *worker) makeAttempt(ctx context.Context, begun turn) attempt {
	made := attempt{tried: w.try(ctx), changes: begun.changes, began: begun.at}
	made.ended = time.Now() // before others get the slot, which takes time of the agent's own
	w.target.m.slots.release(begun.slot)
	if begun.first || !made.Success {
		w.look(ctx, made.tried)
	}
	return made
}

// endTurn counts the turn's attempt, nil for none, and plans the next turn. It reports whether
// the next turn is already due. An attempt that was cut short does not count. If a reload has
// replaced the target, its successor counts the attempt.
func (w *worker) endTurn(ctx context.Context, made *attempt) (again bool) {
	t := w.target
	var entries []entry
	t.mu.Lock()
	if ctx.Err() != nil {
		made = nil
	}
	if made != nil && t.retired == nil {
		entries, made = w.conclude(*made), nil
	}
	stopped := w.stopped
	again = w.planTurn(time.Now())
	t.mu.Unlock()
	logAll(entries)
	if stopped {
		t.m.workerEnded(w, made)
	}
	return again
}

// rest ends a turn that has not begun.
func (w *worker) rest() {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	w.leaveTurn()
}

// leaveTurn ends a turn. With target.mu held.
func (w *worker) leaveTurn() { w.stage, w.cancel, w.began = resting, nil, 0 }

// planTurn ends the turn and sets the timer for the next one. If the next turn is already due,
// planTurn reports true and the caller takes it. The caller holds target.mu.
func (w *worker) planTurn(now time.Time) (due bool) {
	w.leaveTurn()
	if w.stopped || w.quit {
		return false
	}
	at, between := w.next(now)
	w.between = between
	if at.After(now) {
		w.schedule(at, now)
		return false
	}
	// A timer would only wake another thread for this turn.
	w.due, w.readyAt = w.target.m.moment(at), w.target.m.moment(now)
	w.turns.Add(1)
	return true
}

func (m *Manager) observeLateness(d time.Duration) {
	m.latenessMu.Lock()
	defer m.latenessMu.Unlock()
	m.lateness.observe(d)
}

const (
	// maxLook bounds a look, which delays the next turn.
	maxLook = time.Second
	// lookAgain is how long the system may take to remove a dead process: its connections
	// may break before its listening sockets are gone.
	lookAgain = 100 * time.Millisecond
)

// look makes the source take a fresh look, if it can; it looks twice if the attempt ended
// as if the process at the other end had died.
func (w *worker) look(ctx context.Context, made tried) {
	source, name := w.target.source, w.target.cfg.Name
	if !source.CanLook() {
		return
	}
	if made.outcome() == Failed {
		source.AttemptFailed(name)
	}
	ctx, cancel := context.WithTimeout(ctx, max(lookAgain+lookAgain/2, min(w.probe.Timeout, maxLook)))
	defer cancel()
	was := source.Instance(name)
	source.Look(ctx)
	switch made.Reason {
	case action.ConnectionReset, action.HTTPProtocol, action.TLS, action.GRPCStatus, action.Other:
	default:
		return
	}
	if source.Instance(name) != was {
		return
	}
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	select {
	case <-again.C:
		source.Look(ctx)
	case <-ctx.Done():
	}
}

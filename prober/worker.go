// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// slotWidth is the grid on which the phases of all probes lie: one wake-up then
// serves many probes. A period shorter than ten slots has narrower ones.
const slotWidth = 50 * time.Millisecond

// slot returns how wide the slots of a period are.
func slot(period time.Duration) time.Duration { return max(min(slotWidth, period/10), 1) }

// slotBefore returns the beginning of the slot that holds at.
func (m *Manager) slotBefore(at time.Time, period time.Duration) time.Time {
	return at.Add(-(at.Sub(m.epoch) % slot(period)))
}

// slotAfter returns the first beginning of a slot that is not before at.
func (m *Manager) slotAfter(at time.Time, period time.Duration) time.Time {
	if before := m.slotBefore(at, period); before.Before(at) {
		return before.Add(slot(period))
	}
	return at
}

// worker gives one probe its turns: a timer between them, a goroutine during one.
// It never overlaps itself.
type worker struct {
	target  *target
	probe   *config.Probe
	attempt action.Func

	// turns counts the turn that is scheduled or running; there is never a second one.
	turns sync.WaitGroup

	// All below but kind is guarded by target.mu.

	timer  *time.Timer
	cancel context.CancelFunc // ends the attempt, or the wait for a slot

	due     moment // the point of the grid that the next, or the running, turn stands for
	readyAt moment // when it could begin at the earliest: due, or the end of the turn before
	began   moment // when the running attempt began; 0 without one
	lastRun int64  // Unix nanoseconds; 0 before the first
	changed int64  // when result changed, or when there was first one; Unix nanoseconds

	counts
	history history

	kind    gate.Kind   // not guarded: it never changes
	stopped bool        // no more turns: told to stop
	quit    bool        // no more turns until a new instance: the gate said Quit
	poked   bool        // the next turn to begin has been asked for
	warned  bool        // the last attempt's outcome was a warning
	result  gate.Result // as it was published last

	stage    stage
	standing standing
	files    uint8 // that an attempt has open at most; it never changes
}

// stage says how far a turn is.
type stage uint8

const (
	resting stage = iota
	waiting       // for a slot
	acting
)

// moment is a time as a worker keeps it, in a third of the room: nanoseconds since the
// manager began, from 1; 0 is none.
type moment int64

func (m *Manager) moment(t time.Time) moment { return moment(t.Sub(m.epoch)) + 1 }

func (m *Manager) timeOf(at moment) time.Time { return m.epoch.Add(time.Duration(at - 1)) }

// logger returns a logger that names the probe, made as the target's.
func (w *worker) logger() *slog.Logger {
	return w.target.logger().With("probe_type", ProbeType(w.kind))
}

// start schedules the first turn for the point first of the grid, or for now if
// that is past; or, after an attempt from before a reload, for when that has ended. Told to
// stop before, the worker does nothing.
func (w *worker) start(first time.Time) {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	if w.stopped {
		return
	}
	w.due = w.target.m.moment(first)
	if !w.target.m.leaving.has(w.name()) {
		w.schedule(first, time.Now())
	}
}

// schedule sets the timer for a turn, with target.mu held.
func (w *worker) schedule(due, now time.Time) {
	wait, m := max(due.Sub(now), 0), w.target.m
	w.due, w.readyAt = m.moment(due), m.moment(now.Add(wait))
	w.turns.Add(1)
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.turn)
		return
	}
	w.timer.Reset(wait)
}

// poke makes the worker take a turn now or, if it is in one, right after it. The
// grid begins anew when that turn begins (kubelet rule 2.6.3). With target.mu held.
func (w *worker) poke() {
	if w.stopped || w.quit || w.due == 0 {
		return
	}
	w.poked = true
	if w.timer != nil && w.stage == resting && w.timer.Stop() {
		w.readyAt = w.target.m.moment(time.Now())
		w.timer.Reset(0)
	}
}

// revive makes a probe that has quit begin again, as fresh as a kubelet's new worker
// (rule 2.4.2): there is a new instance after all. With target.mu held.
func (w *worker) revive() {
	if !w.quit || w.stopped {
		return
	}
	w.quit, w.poked = false, true
	w.target.state = w.target.state.Restore(w.kind)
	if w.stage == resting {
		now := time.Now()
		w.schedule(now, now)
	}
}

// stop ends the worker: no turn begins from now on, and a running attempt is cut
// short. It does not wait; turns does.
func (w *worker) stop() {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	w.halt(true)
}

// halt is stop with target.mu held; without cut a running attempt goes on.
func (w *worker) halt(cut bool) {
	w.stopped = true
	if cut && w.cancel != nil {
		w.cancel()
	}
	if w.timer != nil && w.timer.Stop() {
		w.turns.Done()
	}
}

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

// next returns the point of the grid of the turn after this one. If points were
// missed, the latest of them is taken, at once; the others are dropped (rule 5.3).
func (w *worker) next(now time.Time) time.Time {
	if w.poked {
		return now
	}
	return w.latest(w.target.m.timeOf(w.due).Add(w.probe.Period), now)
}

// latest returns a point of the grid or, if that is past, the latest one after it that is.
func (w *worker) latest(point, now time.Time) time.Time {
	if late := now.Sub(point); late > 0 {
		point = point.Add(late.Truncate(w.probe.Period))
	}
	return point
}

// overdue reports whether the next turn, or the end of the attempt that is running,
// is overdue by more than 30 s and three periods. One that waits for a slot is not as long
// as others give theirs back: then targets hang, and the agent does not. With target.mu held.
func (w *worker) overdue(now time.Time) bool {
	limit, m := max(30*time.Second, 3*w.probe.Period), w.target.m
	switch {
	case w.began != 0: // even if it has been told to stop
		return now.Sub(m.timeOf(w.began))-limit > maxTries*w.probe.Timeout // the sum of the two may be too long to be told
	case w.stopped || w.quit || w.timer == nil:
		return false
	}
	return now.Sub(m.timeOf(w.readyAt)) > limit && (w.stage != waiting || m.slots.stalled(now) > limit)
}

func (m *Manager) observeLateness(d time.Duration) {
	m.latenessMu.Lock()
	defer m.latenessMu.Unlock()
	m.lateness.Observe(d)
}

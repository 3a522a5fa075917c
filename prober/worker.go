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

// worker gives one probe its turns: a timer between them, a goroutine during one.
// It never overlaps itself.
type worker struct {
	target *target
	probe  *config.Probe
	action action.Func

	// turns counts the scheduled or running turn; there is never a second one.
	turns sync.WaitGroup

	// target.mu guards the fields below, unless a comment says otherwise.

	timer  *time.Timer
	cancel context.CancelFunc // ends the attempt, or the wait for a slot

	due     moment // the point of the grid of the next or running turn
	readyAt moment // when that turn could begin: due, or the end of the turn before
	began   moment // when the running attempt began; 0 if none runs
	lastRun int64  // Unix nanoseconds; 0 before the first
	changed int64  // when result last changed or was first set; Unix nanoseconds

	counts
	history history

	kind    gate.Kind   // not guarded: never changes
	number  uint8       // among the probes of its kind, as the gate counts; never changes
	stopped bool        // no more turns: stop was called
	quit    bool        // no more turns until a new instance: the gate said Quit
	poked   bool        // somebody asked for the next turn
	warned  bool        // the last attempt's outcome was a warning
	result  gate.Result // as last published
	held    bool        // as last published
	enough  bool        // failing, as last published

	stage    stage
	standing standing
	files    uint8 // the most that an attempt has open; never changes

	between uint32 // how many unhealthy periods due is after the last turn on the grid
}

// stage says how far the worker is in a turn.
type stage uint8

const (
	resting stage = iota
	waiting       // for a slot
	acting
)

// logger returns a logger that names the target and the probe, and a member of a list by its name.
func (w *worker) logger() *slog.Logger {
	log := w.target.logger().With("probe_type", ProbeType(w.kind))
	if w.probe.Name != "" {
		log = log.With("probe", w.probe.Name)
	}
	return log
}

func (w *worker) name() probeName { return probeName{w.target.cfg.Name, w.kind, w.probe.Name} }

// state returns the state of the probe. The caller holds target.mu.
func (w *worker) state() gate.Probe { return w.target.state.Probe(w.kind, int(w.number)) }

// fold adds an outcome to the state of the target. The caller holds target.mu.
func (w *worker) fold(r gate.Result) {
	w.target.state = w.target.state.Fold(w.kind, int(w.number), r)
}

// start schedules the first turn for first, a point of the grid or between two points, or for now
// if first is past. If an attempt from before a reload still runs, the turn waits for its end.
// start does nothing if the worker was stopped before.
func (w *worker) start(first time.Time, between uint32) {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	if w.stopped {
		return
	}
	w.due, w.between = w.target.m.moment(first), between
	if !w.target.m.leaving.has(w.name()) {
		w.schedule(first, time.Now())
	}
}

// schedule sets the timer for a turn. The caller holds target.mu.
func (w *worker) schedule(due, now time.Time) {
	wait, m := max(due.Sub(now), 0), w.target.m
	w.due, w.readyAt = m.moment(due), m.moment(now.Add(wait))
	w.turns.Add(1)
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.takeTurns)
		return
	}
	w.timer.Reset(wait)
}

// poke makes the worker take a turn now or, during a turn, right after it. The grid begins
// anew with that turn (kubelet rule 2.6.3). The caller holds target.mu.
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

// revive makes a probe that has quit begin anew, like a new worker of the kubelet (rule
// 2.4.2), because there is a new instance after all. The caller holds target.mu.
func (w *worker) revive() {
	if !w.quit || w.stopped {
		return
	}
	w.quit, w.poked = false, true
	w.target.state = w.target.state.Restore(w.kind, int(w.number))
	if w.stage == resting {
		now := time.Now()
		w.schedule(now, now)
	}
}

// stop ends the worker: no turn begins from now on, and a running attempt is cut short. stop
// does not wait for the turn; turns.Wait does.
func (w *worker) stop() {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	w.halt(true)
}

// halt is stop for a caller that holds target.mu; if cut is false, a running attempt goes on.
func (w *worker) halt(cut bool) {
	w.stopped = true
	if cut && w.cancel != nil {
		w.cancel()
	}
	if w.timer != nil && w.timer.Stop() {
		w.turns.Done()
	}
}

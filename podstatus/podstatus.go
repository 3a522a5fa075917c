// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package podstatus writes what the agent says to the agent's own pod: conditions of its own
// types, and events as a kubelet writes them. The package reads snapshots and is told of changes; a
// slow API server delays neither probes nor restarts.
//
// What is written is decided by pure functions (verdict.go, settling.go, plan.go, event.go).
// One goroutine writes conditions (run.go), and one writes events (emit.go).
package podstatus

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober"
)

// Prober is the view of the targets; *prober.Manager implements it.
type Prober interface {
	Status(d prober.Detail) prober.Status
	Target(name string, d prober.Detail) (prober.TargetStatus, bool)
	Subscribe(also ...prober.Interest) *prober.Subscription
	// Terminate says that the pod is being deleted.
	Terminate()
}

// Options configures a Writer.
type Options struct {
	Prober Prober
	// Pod is the view of the agent's own pod; its client writes.
	Pod    *kubernetes.Follower
	Logger *slog.Logger
}

// Writer writes what a configuration asks for. Without such a configuration it has no
// goroutine and no subscription, and asks the API server for nothing.
type Writer struct {
	o      Options
	counts counts
	synced atomic.Bool
	on     atomic.Bool
	events emitter

	mu     sync.Mutex // one change of the run at a time
	run    *run       // nil: off
	memory memory     // of the runs, one after the other
	closed bool
}

// New returns a Writer that is off.
func New(o Options) *Writer {
	w := &Writer{o: o}
	w.events = emitter{o: o, counts: &w.counts, queue: make(chan event, burst), seen: make(chan struct{}, 1)}
	return w
}

// Apply makes the Writer write what cfg asks for. A condition that cfg no longer has keeps its
// last word in the pod. Apply waits for the end of a write that cfg overtakes, which it cuts
// short.
func (w *Writer) Apply(cfg *config.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return
	case w.run != nil && reflect.DeepEqual(w.run.cfg.Load().Kubernetes, cfg.Kubernetes):
		w.run.apply(cfg)
		return
	}
	w.end()
	if cfg.Kubernetes == nil {
		w.memory = memory{}
		w.events.drain()
		return
	}
	w.run = w.start(cfg)
}

// Finish writes the last word of each condition, unless the pod is being deleted, and ends the
// Writer. Finish waits for the API server until ctx is done.
func (w *Writer) Finish(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run != nil {
		w.run.finish(ctx)
	}
	w.closed = true
	w.end()
}

// Close ends the Writer without a last word.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.end()
}

// end ends the run and waits for its goroutines. The caller holds mu.
func (w *Writer) end() {
	if w.run != nil {
		w.run.end()
		w.run = nil
	}
	w.on.Store(false)
}

// Acted makes an event of an act that begins or has failed, if events are written. Acted never
// waits.
func (w *Writer) Acted(a Act) { w.events.acted(a) }

// Counts is what a Writer has written since the agent began.
type Counts struct {
	// Conditions and Events count requests by whether they succeeded, Dropped the events that
	// were never written.
	ConditionsSucceeded, ConditionsFailed        uint64
	EventsSucceeded, EventsFailed, EventsDropped uint64
	// Synced says that the pod has the conditions that the agent wants, as far as it knows.
	Synced bool
}

// Counts returns what has been written. The second result is false while the Writer is off.
func (w *Writer) Counts() (Counts, bool) {
	if !w.on.Load() {
		return Counts{}, false
	}
	c := w.counts.read()
	c.Synced = w.synced.Load()
	return c, true
}

// counts counts writes.
type counts struct {
	conditions, failedConditions  atomic.Uint64
	events, failedEvents, dropped atomic.Uint64
}

func (c *counts) read() Counts {
	return Counts{
		ConditionsSucceeded: c.conditions.Load(), ConditionsFailed: c.failedConditions.Load(),
		EventsSucceeded: c.events.Load(), EventsFailed: c.failedEvents.Load(), EventsDropped: c.dropped.Load(),
	}
}

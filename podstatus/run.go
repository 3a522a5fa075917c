// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober"
)

const (
	// together is how long a change waits for those that come with it.
	together = 10 * time.Millisecond
	// window is the least time between two patches: the changes of that time make one.
	window = 100 * time.Millisecond
	// reconcileGap is how often the pod is compared with what it should say.
	reconcileGap = 10 * time.Second
	// While targets are not settled the agent looks again, ever less often: attempts that
	// change nothing tell no reader.
	minLook, maxLook = window, 2 * time.Second
)

// memory is what one run leaves to the next.
type memory struct {
	settling settling
	runs     runs
	said     map[string]said // by type
}

// said is the last write of a condition.
type said struct {
	kubernetes.PodCondition // as answered; if the answer was lost, as the pod said before
	// shown is what the watch showed at the write. While it shows nothing newer, it cannot
	// contradict what was said.
	shown *kubernetes.Pod
	lost  bool // the answer was lost: nobody knows whether the write was done
}

// run writes for one configuration. Its loop is the only one to use memory.
type run struct {
	*Writer
	cfg     atomic.Pointer[config.Config]
	log     *slog.Logger
	wake    chan struct{} // of capacity 1: the configuration or the pod has changed
	last    chan struct{} // closed: write the last word
	spoken  chan struct{} // closed: the last word is written, or will not be
	cancel  context.CancelFunc
	running sync.WaitGroup

	// Of the loop:
	look     time.Time // when to look at the snapshots; zero: at the next change
	retry    time.Time // no write before; zero: at once
	check    time.Time // when to compare with the pod
	wroteAt  time.Time // when the last write began, or the run
	waiting  time.Time // since when some target is not settled; zero: none
	failures int       // in a row
	told     kubernetes.Trouble
	lacking  bool // some condition has no word for longer than it should
	over     bool // the pod is gone
}

// start begins a run. The caller holds mu.
func (w *Writer) start(cfg *config.Config) *run {
	r := &run{
		Writer: w,
		log:    w.o.Logger,
		wake:   make(chan struct{}, 1),
		last:   make(chan struct{}),
		spoken: make(chan struct{}),
	}
	r.cfg.Store(cfg)
	w.events.on(cfg)
	w.synced.Store(true)
	w.on.Store(true)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.running.Go(func() { w.o.Pod.Follow(ctx, r.podChanged) })
	r.running.Go(func() { r.loop(ctx) })
	if cfg.Kubernetes.Events {
		r.running.Go(func() { w.events.run(ctx) })
	}
	return r
}

// apply changes the targets of the configuration.
func (r *run) apply(cfg *config.Config) {
	r.cfg.Store(cfg)
	r.events.on(cfg)
	r.poke()
}

// podChanged is called by the watch, and so waits for no request: a deletion has to end the
// probes at once, whatever the loop is doing.
func (r *run) podChanged() {
	if p := r.o.Pod.Pod(); p != nil && (p.Metadata.DeletionTimestamp != nil || p.Gone) {
		r.o.Prober.Terminate() // as a preStop hook does; a second call does nothing
	}
	r.events.podChanged()
	r.poke()
}

func (r *run) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// finish makes the loop write the last word, and waits for that until ctx is done.
func (r *run) finish(ctx context.Context) {
	close(r.last)
	select {
	case <-r.spoken:
	case <-ctx.Done():
	}
}

func (r *run) end() {
	r.cancel()
	r.running.Wait()
	r.events.off()
}

func (r *run) loop(ctx context.Context) {
	var also []prober.Interest
	if r.cfg.Load().Kubernetes.Events {
		also = append(also, prober.Runs)
	}
	sub := r.o.Prober.Subscribe(also...)
	defer sub.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	r.wroteAt = time.Now()
	r.check = r.wroteAt.Add(reconcileGap)
	last := r.last
	for ctx.Err() == nil {
		timer.Reset(time.Until(r.next()))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			r.turn(ctx, sub)
		case <-sub.C:
			r.lookBy(latest(time.Now().Add(together), r.wroteAt.Add(window)))
		case <-r.wake:
			r.lookBy(time.Now().Add(window))
		case <-last:
			last, r.retry = nil, time.Time{} // one try, whatever was before
			r.turn(ctx, sub)
			close(r.spoken)
		}
	}
}

// lookBy plans a look for that time, unless one comes before.
func (r *run) lookBy(at time.Time) {
	if r.look.IsZero() || at.Before(r.look) {
		r.look = at
	}
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// next returns when the next turn is due.
func (r *run) next() time.Time {
	next := r.check
	if !r.look.IsZero() && r.look.Before(next) {
		next = r.look
	}
	return next
}

// turn looks at the snapshots and writes what the pod should say and does not.
func (r *run) turn(ctx context.Context, sub *prober.Subscription) {
	now := time.Now()
	r.look = time.Time{}
	cfg := r.cfg.Load()
	if cfg.Kubernetes.Events {
		r.tellEvents(sub.Changes(), now)
	}
	status := r.o.Prober.Status(prober.Brief)
	words := r.words(cfg.Kubernetes, &status, now)
	reconcile := !now.Before(r.check)
	if reconcile {
		r.check = now.Add(reconcileGap)
	}
	if err := r.sync(ctx, words, reconcile, now); err != nil && ctx.Err() == nil {
		r.fail(err)
	}
}

// tellEvents makes events of what has changed.
func (r *run) tellEvents(c prober.Changes, now time.Time) {
	if r.memory.runs == nil {
		r.memory.runs = runs{}
	}
	names := c.Targets
	if c.All {
		status := r.o.Prober.Status(prober.Brief)
		for i := range status.Statuses {
			names = append(names, status.Statuses[i].Name)
		}
		r.memory.runs.forget(status.Statuses)
	}
	for _, name := range names {
		t, ok := r.o.Prober.Target(name, prober.Full)
		if !ok {
			continue
		}
		for _, e := range r.memory.runs.events(&t, now) {
			r.events.add(e)
		}
	}
}

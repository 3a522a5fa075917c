// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// This file tries a configuration: one attempt of each probe, whatever the gate would say.

const (
	// tryGap is the time between the beginnings of two attempts, as at the start of an agent.
	tryGap = time.Millisecond
	// trySource is how long an attempt waits until its source sees the target.
	trySource = 5 * time.Second
	// tryOver is how much longer than its tries an attempt may take before Try goes on without
	// its end: a command that no kill reaches never ends.
	tryOver = 5 * time.Second
	// maxTrialOutput is the most bytes that a Trial has of an output.
	maxTrialOutput = 200
)

// Trial is the only attempt of a probe.
type Trial struct {
	// Skipped says that there was none: only a running agent receives posted beats.
	Skipped  bool
	Target   string
	Probe    string // the kind, and the name of a member: readiness, or readiness/grpc
	Outcome  AttemptOutcome
	Reason   action.Reason
	Duration time.Duration
	// Output is the first line of the output: cut, with control characters escaped, and without
	// secrets of the target's configuration.
	Output string
}

// Try makes one attempt of each probe of a configuration, with as many at a time as a Manager
// with these options, and passes each to tell, one after the other, as it ends. A probe that has
// not started, waits or is held in a running agent makes its attempt all the same. Only commands
// that run inside a container need their source. If ctx is done, Try cuts the attempts short and
// does not tell of them. Try writes nothing, and restarts nothing.
func Try(ctx context.Context, cfg *config.Config, opts Options, tell func(Trial)) {
	m := New(opts)
	defer m.Close()
	var attempts sync.WaitGroup
	var telling sync.Mutex
	begin, n := time.Now(), 0
	for i := range cfg.Targets {
		for _, w := range m.onTrial(&cfg.Targets[i]).workers {
			until(ctx, begin.Add(time.Duration(n)*tryGap))
			n++
			attempts.Go(func() {
				if is, ok := w.trial(ctx); ok {
					telling.Lock()
					defer telling.Unlock()
					tell(is)
				}
			})
		}
	}
	attempts.Wait()
}

// onTrial returns a target whose workers take no turns.
func (m *Manager) onTrial(c *config.Target) *target {
	var source instance.Source = instance.Static{} // which began long ago
	if runsInside(c) {
		source = m.sources.acquire(c)
	}
	m.swapping.Lock()
	defer m.swapping.Unlock()
	t, _ := newTarget(m, c, source, nil) // what it would log is about instances
	return t
}

// runsInside reports whether a command of the target runs inside a container.
func runsInside(c *config.Target) bool {
	for _, p := range c.All() {
		if p.Exec != nil && c.Instance.Source == config.SourceDocker {
			return true
		}
	}
	return false
}

// trial makes the worker's attempt. It reports false if ctx was done before the end.
func (w *worker) trial(ctx context.Context) (is Trial, ok bool) {
	if h := w.probe.Heartbeat; h != nil && h.File == "" {
		return Trial{
			Target: w.target.cfg.Name, Probe: ProbeName(w.kind, w.probe.Name),
			Skipped: true, Outcome: UnknownOutcome, Output: "only a running agent receives beats",
		}, true
	}
	if w.probe.Exec != nil {
		w.target.awaitSource(ctx)
	}
	want := w.claim()
	if !w.target.m.slots.acquire(ctx, want) {
		return Trial{}, false
	}
	made, took := w.tryWithin(ctx, maxTries*w.probe.Timeout+tryOver)
	w.target.m.slots.release(want)
	w.tidy(&made)
	return Trial{
		Target:   w.target.cfg.Name,
		Probe:    ProbeName(w.kind, w.probe.Name),
		Outcome:  made.outcome(),
		Reason:   made.Reason,
		Duration: took,
		Output:   firstLine(made.Output),
	}, ctx.Err() == nil
}

// tryWithin makes the worker's attempt. Nobody waits for an attempt that goes on after limit:
// it ends with the process.
func (w *worker) tryWithin(ctx context.Context, limit time.Duration) (made tried, took time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan tried, 1)
	began := time.Now()
	go func() { ended <- w.try(ctx) }()
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case made = <-ended:
	case <-over.C:
		made = tried{Outcome: action.Outcome{Reason: action.Other}, err: errEndless}
	}
	return made, time.Since(began)
}

// awaitSource waits until the source of the target can see it.
func (t *target) awaitSource(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, trySource)
	defer cancel()
	for ctx.Err() == nil && !t.source.Up() && t.source.Instance(t.cfg.Name).ID == "" {
		until(ctx, time.Now().Add(10*time.Millisecond))
	}
}

// until waits until a time, or until ctx is done.
func until(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// firstLine returns the first line of a text that has more than spaces.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ReplaceAll(output.Visible(output.Cut(strings.TrimSpace(line), maxTrialOutput)), "\t", " ")
}

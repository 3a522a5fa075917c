// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// lookAtAll looks at every target. The caller holds the token.
func (p *Source) lookAtAll() {
	began := time.Now()
	aside := p.look(p.all())
	ended := time.Now()
	p.mu.Lock()
	p.began, p.again = began, ended.Add(instance.LookGap(ended.Sub(began)-aside))
	p.mu.Unlock()
	p.wakeRun()
}

// all returns the targets.
func (p *Source) all() []*watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	ws := make([]*watched, 0, len(p.targets))
	for _, w := range p.targets {
		ws = append(ws, w)
	}
	return ws
}

// wakeRun makes Run tell the news and plan anew.
func (p *Source) wakeRun() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run looks until ctx is done.
func (p *Source) Run(ctx context.Context, changed func(target string)) error {
	ends := newEnds()
	defer ends.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.notes.Write()
		for _, target := range p.news() {
			changed(target)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake: // another goroutine has looked
		case <-ends.seen:
			p.withToken(ctx, func() { p.look(p.led(ends.collect())) })
		case <-timer.C:
			p.withToken(ctx, p.lookAtAll)
		}
		if wait := p.follow(ends); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// withToken waits for the token and calls f with it, unless ctx is done first.
func (p *Source) withToken(ctx context.Context, f func()) {
	select {
	case p.token <- struct{}{}:
		f()
		<-p.token
	case <-ctx.Done():
	}
}

// news returns the targets that Run has yet to tell.
func (p *Source) news() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Sorted(maps.Keys(p.changed))
	clear(p.changed)
	return names
}

// led returns the targets that are led by one of these processes.
func (p *Source) led(by map[proc.Process]bool) []*watched {
	return slices.DeleteFunc(p.all(), func(w *watched) bool { return !by[w.lead] })
}

// follow makes ends wait for the present leaders. It returns how long until the next look at
// everything; 0 means not before an event.
func (p *Source) follow(ends *ends) time.Duration {
	leaders := make(map[proc.Process]bool)
	var every time.Duration
	soon := func(d time.Duration) {
		if every == 0 || d < every {
			every = d
		}
	}
	p.mu.Lock()
	for _, w := range p.targets {
		if w.follow != (proc.Process{}) {
			leaders[w.follow] = true
		}
		switch {
		case w.pending:
			soon(processGone)
		case w.match == "" || w.blind:
			soon(processRuns)
		}
	}
	if p.broken != "" || p.scanned {
		soon(processRuns)
	}
	began, again := p.began, p.again
	p.mu.Unlock()
	if ends.follow(leaders) {
		soon(processGone)
	}
	if every == 0 {
		return 0
	}
	return max(time.Until(began.Add(every)), time.Until(again), 1)
}

// publish publishes what a look has found, and logs when a target can no longer, or can again,
// be looked up. The instance is the leader's life until there is another leader.
func (p *Source) publish(w *watched) {
	view, details, follow := gate.Instance{}, instance.Details{Message: w.staleWhy}, proc.Process{}
	switch {
	case w.lead == proc.Process{}:
	case w.alive:
		view = gate.Instance{ID: p.eyes.id(w.lead), Phase: gate.Running, StartedAt: w.since}
		details.PID, follow = w.lead.PID, w.lead
	default:
		view = gate.Instance{ID: p.eyes.id(w.lead), Phase: gate.Terminated, StartedAt: w.since}
	}
	if w.err != nil {
		details.Message = w.err.Error()
	}
	p.mu.Lock()
	if p.targets[w.name] != w {
		p.mu.Unlock()
		return // forgotten meanwhile
	}
	was := w.blind
	if w.blind = w.err != nil; w.blind != was {
		if p.blind--; w.blind {
			p.blind += 2
		}
	}
	if w.view != view || w.details != details {
		p.changed[w.name] = true
	}
	w.view, w.details, w.follow, w.pending = view, details, follow, w.anew || !w.alive
	p.mu.Unlock()
	switch err := w.err; {
	case err != nil && !was:
		p.notes.Add(func() {
			p.log.Warn("cannot look up the process of the target: the last view stays", "target", w.name, "err", err)
		})
	case err == nil && was:
		p.notes.Add(func() { p.log.Info("can look up the process of the target again", "target", w.name) })
	}
}

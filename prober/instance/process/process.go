// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package process is the source of targets that are processes, each found by its pid
// file, its port or its command line.
package process

import (
	"cmp"
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// processGone is how often a successor is looked for, and an end where the kernel
	// does not tell it.
	processGone = 100 * time.Millisecond
	// processRuns is how often a pid file or a port is looked at while its process runs.
	processRuns = time.Second
)

// Source is the source of targets that are processes of this machine, or of the
// agent's own process namespace: each has one leader, found by its pid file, by the port
// that it listens at or by its command line. Every life of a leader is an instance.
type Source struct {
	instance.Defaults

	log   *slog.Logger
	notes instance.Notes
	token chan struct{} // one: who holds it may look, and owns what is said to be its
	wake  chan struct{} // tells Run that there is something to say
	eyes  eyes          // what is needed to see; of who holds the token

	mu      sync.Mutex // short, and never over a system call
	targets map[string]*watched
	changed map[string]bool // what Run has yet to tell
	broken  string          // why nothing at all can be seen; empty: it can
	blind   int             // targets in trouble
	scanned bool            // there is a scan that may be let go of
	began   time.Time       // when the last look at everything began
	again   time.Time       // when the next may
}

// sought is what a target is found by; one of the three.
type sought struct {
	pidFile string
	port    int
	match   string
}

// watched is a target.
type watched struct {
	name   string
	sought // written by who holds the token, under Source.mu

	// Of who holds the token.
	pattern  *regexp.Regexp
	lead     proc.Process // the last leader; zero: none yet
	alive    bool         // it runs
	since    time.Time    // when it began to run; constant for one leader
	anew     bool         // what is sought has changed since the leader was found
	err      error        // why it cannot be looked up
	inodes   []uint64     // the sockets on the port when its owner was last sought
	retry    time.Time    // when it is sought again although they are the same
	tried    *scan        // the scan that it was last sought in
	stale    proc.Process // not the leader, although the pid file says so
	staleWhy string

	// Under Source.mu.
	view    gate.Instance
	details instance.Details
	blind   bool         // it cannot be looked up
	follow  proc.Process // whose end is waited for; zero: nobody's
	pending bool         // it is being sought
}

// New returns a source without targets.
func New(log *slog.Logger) *Source {
	return &Source{
		log: log, token: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		targets: make(map[string]*watched), changed: make(map[string]bool),
	}
}

// Instance returns the leader's life as it was last seen.
func (p *Source) Instance(target string) gate.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.targets[target]; w != nil {
		return w.view
	}
	return gate.Instance{}
}

// Describe returns its number, while it runs, and what is wrong or particular.
func (p *Source) Describe(target string) instance.Details {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.targets[target]
	if w == nil {
		return instance.Details{}
	}
	d := w.details
	d.Message = cmp.Or(p.broken, d.Message)
	return d
}

// Up reports whether every target can be looked up, running or not.
func (p *Source) Up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken == "" && p.blind == 0
}

// Watch begins to watch a target, or goes on under its changed configuration, and takes
// a look at once.
func (p *Source) Watch(t *config.Target) {
	want := sought{pidFile: t.Instance.PIDFile, port: t.Instance.Port.Number, match: t.Instance.Match}
	p.token <- struct{}{}
	defer func() { <-p.token }()
	p.mu.Lock()
	w := p.targets[t.Name]
	if w == nil {
		w = &watched{name: t.Name, anew: true, pending: true}
		p.targets[t.Name] = w
	}
	same := w.sought == want
	w.sought = want
	p.mu.Unlock()
	if same {
		return
	}
	w.anew, w.pattern = true, nil
	w.inodes, w.retry, w.tried, w.stale, w.staleWhy = nil, time.Time{}, nil, proc.Process{}, ""
	if want.match != "" {
		w.pattern = regexp.MustCompile(want.match) // which the configuration has checked
	}
	p.look([]*watched{w})
	p.wakeRun()
}

// Forget ends that.
func (p *Source) Forget(target string) {
	p.mu.Lock()
	if w := p.targets[target]; w != nil {
		if w.blind {
			p.blind--
		}
		delete(p.targets, target)
		delete(p.changed, target)
	}
	p.mu.Unlock()
	p.wakeRun()
}

// CanLook returns true.
func (p *Source) CanLook() bool { return true }

// Look takes a fresh look at everything, and returns when one has been taken that began
// after the call, or when ctx is done. Any number of callers share one look.
func (p *Source) Look(ctx context.Context) {
	asked := time.Now()
	for {
		select {
		case p.token <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		began, wait := p.began, time.Until(p.again)
		p.mu.Unlock()
		if !began.Before(asked) || wait <= 0 {
			if began.Before(asked) {
				p.lookAtAll()
			}
			<-p.token
			return
		}
		<-p.token
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

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
	// processGone is the time between two looks for a successor, or for an end that the
	// kernel does not report.
	processGone = 100 * time.Millisecond
	// processRuns is the time between two looks at a pid file or port whose process runs.
	processRuns = time.Second
)

// Source is the source of targets that are processes in the agent's own process namespace.
// Each target has one leader, found by its pid file, by the port on which it listens, or by
// its command line. Every life of a leader is an instance.
type Source struct {
	instance.Defaults

	log   *slog.Logger
	notes instance.Notes
	token chan struct{} // one token: its holder may look, and owns the fields marked so
	wake  chan struct{} // tells Run that there is news
	eyes  eyes          // owned by the holder of the token

	mu      sync.Mutex // held briefly, and never over a system call
	targets map[string]*watched
	changed map[string]bool // targets that Run has yet to tell
	broken  string          // why no process can be looked up; empty if they can
	blind   int             // targets in trouble
	scanned bool            // there is a scan that may be dropped
	began   time.Time       // when the last look at everything began
	again   time.Time       // when the next look at everything may begin
}

// sought is how a target is found: by one of the three.
type sought struct {
	pidFile string
	port    int
	match   string
}

// watched is a target.
type watched struct {
	name   string
	sought // written by the holder of the token, under Source.mu

	// Owned by the holder of the token.
	pattern  *regexp.Regexp
	lead     proc.Process // the last leader; zero if none yet
	alive    bool         // the leader runs
	since    time.Time    // when the leader began; constant for one leader
	anew     bool         // what is sought has changed since the leader was found
	err      error        // why the leader cannot be looked up
	inodes   []uint64     // the sockets on the port when its owner was last sought
	retry    time.Time    // when the owner is sought again although inodes are the same
	tried    *scan        // the scan in which the leader was last sought
	stale    proc.Process // not the leader, although the pid file says so
	staleWhy string

	// Guarded by Source.mu.
	view    gate.Instance
	details instance.Details
	blind   bool         // the target cannot be looked up
	follow  proc.Process // the process whose end is awaited; zero if none
	pending bool         // the leader is being sought
}

// New returns a source without targets.
func New(log *slog.Logger) *Source {
	return &Source{
		log: log, token: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		targets: make(map[string]*watched), changed: make(map[string]bool),
	}
}

// Instance returns the leader's life as last seen.
func (p *Source) Instance(target string) gate.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.targets[target]; w != nil {
		return w.view
	}
	return gate.Instance{}
}

// Describe returns the leader's PID, while it runs, and what is wrong or special.
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

// Up reports whether every target, running or not, can be looked up.
func (p *Source) Up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken == "" && p.blind == 0
}

// Sees reports whether the target can be looked up.
func (p *Source) Sees(target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.targets[target]
	return p.broken == "" && w != nil && !w.blind
}

// Watch begins to watch a target, or changes its configuration, and looks at once.
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
		w.pattern = regexp.MustCompile(want.match) // the configuration has checked the pattern
	}
	p.look([]*watched{w})
	p.wakeRun()
}

// Forget ends the watch of a target.
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

// Look returns when a look at everything that began after the call has ended, or when ctx is
// done. Any number of callers share one look.
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

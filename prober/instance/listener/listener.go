// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package listener is the source that infers instances from listening sockets.
package listener

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// urgentRefresh is the time between two reads while the source expects a change.
	urgentRefresh = 100 * time.Millisecond
	// nothingToRead is the time between two reads without targets.
	nothingToRead = time.Hour
)

// Source infers instances from the listening sockets of the agent's own network namespace,
// which all containers of a pod share: a restarted process has new sockets. A Source needs no
// privilege, and one read serves all targets.
type Source struct {
	instance.Defaults

	log   *slog.Logger
	notes instance.Notes
	wake  chan struct{} // tells Run of a new plan or of news
	asks  chan chan struct{}

	reading sync.Mutex // held while sockets are read; taken before mu
	table   table
	witness witness       // nil if there is none
	found   []proc.Socket // what the last read found
	spare   []proc.Socket
	there   places // what was found, by place; changed under reading and mu
	paths   paths
	method  string        // how the last read was done
	readAt  time.Time     // when the last read began
	cost    time.Duration // how long the last read took

	mu      sync.Mutex
	targets map[string]*listening
	wait    time.Duration // from one read to the next, as planned by Run
	news    []string      // targets with a change that Run has not told yet
	down    error         // why sockets cannot be read
}

// table reads listening sockets.
type table interface {
	// Read appends all listening sockets to into.
	Read(into []proc.Socket) ([]proc.Socket, error)
	// How names the way of the last read; IDs from two ways cannot be compared.
	How() string
	// Close closes what Read has opened; the next Read opens it again.
	Close()
}

// New returns a source that watches nothing yet.
func New(log *slog.Logger) *Source {
	return &Source{
		log:     log,
		wake:    make(chan struct{}, 1),
		asks:    make(chan chan struct{}),
		table:   new(proc.Sockets),
		witness: newWitness(),
		there:   places{byPort: map[uint16][]proc.Socket{}},
		paths:   newPaths(),
		targets: map[string]*listening{},
		wait:    nothingToRead,
	}
}

// Instance returns what the sockets of the target say.
func (s *Source) Instance(target string) gate.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil {
		return l.instance
	}
	return gate.Instance{}
}

// Describe says what the source cannot see of an instance.
func (s *Source) Describe(target string) instance.Details {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[target]
	switch {
	case l == nil:
	case s.down != nil:
		return instance.Details{Message: "cannot read listening sockets: " + s.down.Error()}
	case s.blindness(l) != nil:
		return instance.Details{Message: "sees no restarts: cannot " + s.blindness(l).Error()}
	case !l.seen:
		return instance.Details{Message: "no listening socket seen yet: treated like static"}
	case l.fresh:
		return instance.Details{Message: "does not listen yet"}
	case l.closed:
		return instance.Details{Message: "the process runs but does not listen"}
	}
	return instance.Details{}
}

// Up reports whether sockets can be read.
func (s *Source) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down == nil && s.paths.down == nil
}

// Sees reports whether sockets can be read, and have ever shown the target.
func (s *Source) Sees(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[target]
	return s.down == nil && l != nil && l.seen && s.blindness(l) == nil
}

// Watch begins to watch a target, with the current sockets.
func (s *Source) Watch(t *config.Target) {
	s.reading.Lock()
	defer s.reading.Unlock()
	now := time.Now()
	these := pathsOf(t.Instance.Listeners)
	s.mu.Lock()
	s.paths.want(these, 1)
	s.mu.Unlock()
	// Ten thousand targets of one configuration need only one read.
	if now.Sub(s.readAt) > instance.LookGap(s.cost) {
		s.read(now)
	}
	s.watchPaths(these)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[t.Name]
	if l != nil {
		s.paths.want(pathsOf(l.listeners), -1)
		l.configure(&t.Instance, &s.there)
	} else {
		l = newListening(&t.Instance, &s.there, now)
		s.targets[t.Name] = l
	}
	// Nor do they need ten thousand plans.
	if len(s.news) > 0 || l.wait(now) < s.wait {
		s.wakeRun()
	}
}

// Forget ends the watch of a target.
func (s *Source) Forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil {
		s.paths.want(pathsOf(l.listeners), -1)
		delete(s.targets, target)
	}
}

// wakeRun makes Run plan the next read anew.
func (s *Source) wakeRun() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// CanLook returns true.
func (s *Source) CanLook() bool { return true }

// Look returns once a read that began after the call has ended and all its changes have been
// told. It needs a Run that runs, and returns early when ctx is done.
func (s *Source) Look(ctx context.Context) {
	done := make(chan struct{})
	select {
	case s.asks <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Run reads the sockets: at the shortest refresh of all targets, more often while it expects
// a change, and for each Look.
func (s *Source) Run(ctx context.Context, changed func(target string)) error {
	defer func() {
		s.reading.Lock()
		defer s.reading.Unlock()
		s.table.Close()
		s.paths.close()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var asked []chan struct{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			s.tell(changed)
			timer.Reset(time.Until(s.due(len(asked) > 0)))
			continue
		case done := <-s.asks:
			asked = append(asked, done)
			timer.Reset(time.Until(s.due(true)))
			continue
		case <-timer.C:
		}
		s.reading.Lock()
		s.read(time.Now())
		if s.witness != nil {
			s.seek()
		}
		s.reading.Unlock()
		s.tell(changed)
		for _, done := range asked {
			close(done)
		}
		asked = asked[:0]
		timer.Reset(time.Until(s.due(false)))
	}
}

// due returns when to read next; asked says that a Look waits for the read.
func (s *Source) due(asked bool) time.Time {
	s.reading.Lock()
	at, cost := s.readAt, s.cost
	s.reading.Unlock()
	if asked {
		return at.Add(instance.LookGap(cost))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = nothingToRead
	now := time.Now()
	for _, l := range s.targets {
		s.wait = min(s.wait, l.wait(now))
	}
	return at.Add(max(s.wait, instance.LookGap(cost)))
}

// tell writes the notes, and calls changed for each target that has changed since.
func (s *Source) tell(changed func(target string)) {
	s.notes.Write()
	s.mu.Lock()
	news := s.news
	s.news = nil
	s.mu.Unlock()
	for _, name := range news {
		changed(name)
	}
}

// read reads the sockets and records what has changed. The caller holds reading.
func (s *Source) read(now time.Time) {
	found, err := s.table.Read(s.spare[:0])
	s.readPaths()
	s.readAt, s.cost = now, time.Since(now)

	s.setDown(err)
	if err != nil {
		// The last view stays, but a target that has ended must not boot for ever.
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, l := range s.targets {
			if l.overdue(now) {
				s.note(name, l, func() { l.beginUnseen(now) })
			}
		}
		return
	}
	same := s.store(found) && !s.paths.changed
	s.paths.changed = false
	another := s.method != s.table.How()
	s.method = s.table.How()
	var fates map[string]fate
	var reborn map[string]bool
	if s.witness != nil {
		fates, reborn = s.fates(), s.reborn(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.targets {
		if reborn[name] || l.overdue(now) && s.blindness(l) != nil {
			s.note(name, l, func() { l.beginUnseen(now) })
		}
		if same && l.settled() {
			continue
		}
		sockets, _ := l.of(&s.there)
		s.note(name, l, func() {
			if another && len(sockets) > 0 {
				l.rebase(sockets)
			} else {
				l.infer(sockets, fates[name], now)
			}
		})
	}
}

// note applies change, and records news if the target's instance has changed.
func (s *Source) note(name string, l *listening, change func()) {
	was := *l
	change()
	if was.instance != l.instance || was.seen != l.seen || was.fresh != l.fresh || was.closed != l.closed || !was.lostAt.Equal(l.lostAt) {
		s.news = append(s.news, name)
	}
}

// setDown records why sockets cannot be read, nil if they can, and logs a change.
func (s *Source) setDown(err error) {
	s.mu.Lock()
	was := s.down
	s.down = err
	s.mu.Unlock()
	switch {
	case err != nil && was == nil:
		s.notes.Add(func() { s.log.Warn("cannot read listening sockets: the agent sees no restarts", "err", err) })
	case err == nil && was != nil:
		s.notes.Add(func() { s.log.Info("can read listening sockets again") })
	default:
		return
	}
	s.wakeRun()
}

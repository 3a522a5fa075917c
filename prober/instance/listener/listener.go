// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package listener is the source that infers instances from listening sockets.
package listener

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// urgentRefresh is how often sockets are read while a change is waited for.
	urgentRefresh = 100 * time.Millisecond
	// nothingToRead is how often they are read for no target.
	nothingToRead = time.Hour
)

// Source infers instances from the listening sockets of the agent's own network
// namespace, which all containers of a pod share: a process that was restarted has
// new ones. It needs no privilege. One read serves all targets.
type Source struct {
	instance.Defaults

	log   *slog.Logger
	notes instance.Notes
	wake  chan struct{} // there is something new to wait for, or to tell
	asks  chan chan struct{}

	reading sync.Mutex // held while sockets are read; taken before mu
	table   table
	witness witness       // nil: none can be had
	found   []proc.Socket // what the last read found
	spare   []proc.Socket
	byPort  map[uint16][]proc.Socket // found, by port
	method  string                   // how they were read
	readAt  time.Time                // when the last read began
	cost    time.Duration            // how long it took

	mu      sync.Mutex
	targets map[string]*listening
	wait    time.Duration // from one read to the next, as Run has planned it
	news    []string      // targets with a change that has not been told yet
	down    error         // why sockets cannot be read
}

// table is where listening sockets are read.
type table interface {
	// Read appends all of them to into.
	Read(into []proc.Socket) ([]proc.Socket, error)
	// How names the way they are read; the ids of two ways cannot be compared.
	How() string
	// Close lets go of what it reads from; the next read takes it again.
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
		byPort:  map[uint16][]proc.Socket{},
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

// Describe says what cannot be seen of an instance.
func (s *Source) Describe(target string) instance.Details {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[target]
	switch {
	case l == nil:
	case s.down != nil:
		return instance.Details{Message: "cannot read listening sockets: " + s.down.Error()}
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
	return s.down == nil
}

// Watch begins with the sockets there are.
func (s *Source) Watch(t *config.Target) {
	s.reading.Lock()
	defer s.reading.Unlock()
	now := time.Now()
	// Ten thousand targets of one configuration need one read, not as many.
	if now.Sub(s.readAt) > instance.LookGap(s.cost) {
		s.read(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[t.Name]
	if l != nil {
		l.configure(&t.Instance, s.byPort)
	} else {
		l = newListening(&t.Instance, s.byPort, now)
		s.targets[t.Name] = l
	}
	// Nor do they need as many plans.
	if len(s.news) > 0 || l.wait(now) < s.wait {
		s.wakeRun()
	}
}

// Forget ends that.
func (s *Source) Forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.targets, target)
}

// wakeRun makes Run think anew about when to read next.
func (s *Source) wakeRun() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// CanLook returns true.
func (s *Source) CanLook() bool { return true }

// Look returns once sockets have been read that were there after the call, and all
// changes that this brought are told. It returns early when ctx is done, and only
// while Run runs.
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

// Run reads the sockets: every refresh of the most demanding target, more often
// while a change is waited for, and when asked.
func (s *Source) Run(ctx context.Context, changed func(target string)) error {
	defer func() {
		s.reading.Lock()
		defer s.reading.Unlock()
		s.table.Close()
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

// due returns when to read next; asked says that somebody waits for it.
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

// tell logs what there is to log, and calls changed for each target that has changed
// since.
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

// read reads the sockets and takes note of what changed, with reading held.
func (s *Source) read(now time.Time) {
	found, err := s.table.Read(s.spare[:0])
	s.readAt, s.cost = now, time.Since(now)

	s.setDown(err)
	if err != nil {
		// The last view stays. But what has ended is not taken for booting for ever.
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, l := range s.targets {
			if l.overdue(now) {
				s.note(name, l, func() { l.beginUnseen(now) })
			}
		}
		return
	}
	same := s.store(found)
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
		if reborn[name] {
			s.note(name, l, func() { l.beginUnseen(now) })
		}
		if same && l.settled() {
			continue
		}
		sockets, _ := l.of(s.byPort)
		s.note(name, l, func() {
			if another && len(sockets) > 0 {
				l.rebase(sockets)
			} else {
				l.infer(sockets, fates[name], now)
			}
		})
	}
}

// store takes note of the sockets that were found, and reports whether they are those of
// the read before. Called with reading held.
func (s *Source) store(found []proc.Socket) (same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same = slices.Equal(found, s.found)
	s.found, s.spare = found, s.found
	if same {
		return true
	}
	for port := range s.byPort {
		delete(s.byPort, port)
	}
	for _, f := range found {
		s.byPort[f.Local.Port()] = append(s.byPort[f.Local.Port()], f)
	}
	return false
}

// note makes a change of a target news if it is one.
func (s *Source) note(name string, l *listening, change func()) {
	was := *l
	change()
	if was.instance != l.instance || was.seen != l.seen || was.fresh != l.fresh || was.closed != l.closed || !was.lostAt.Equal(l.lostAt) {
		s.news = append(s.news, name)
	}
}

// setDown takes note of why sockets cannot be read, and has a change logged.
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

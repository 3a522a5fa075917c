// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// What a listener is told, by the probes of its targets and by those who ask about them.

// Held tells whether a probe of the target waits for a new instance.
func (s *Source) Held(target string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil && l.held != held {
		l.held = held
		s.wakeRun()
	}
}

// Ended tells that the target had ended before it was watched here: if nobody listens,
// that is not taken for a target whose sockets cannot be seen.
func (s *Source) Ended(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil {
		l.end(time.Now())
		s.wakeRun()
	}
}

// Declare makes the next instance of a target that has ended begin now, although it
// does not listen yet. It reports whether it did.
func (s *Source) Declare(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[target]
	if l == nil || l.instance.Phase == gate.Running {
		return false
	}
	l.beginUnseen(time.Now())
	return true
}

// AttemptFailed tells that an attempt at the target has failed: if its sockets have gone, that is
// the end of its instance. Look comes after it.
func (s *Source) AttemptFailed(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil {
		l.missed = true
	}
}

// InDoubt reports whether the sockets of the target are gone and nobody knows yet whether it
// has ended. An attempt tells.
func (s *Source) InDoubt(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[target]
	return l != nil && !l.lostAt.IsZero()
}

// Asked tells that a kubelet asks about the target, which it does only while the container
// runs, and since when it must have run. If the target has ended long ago, its next
// instance begins, although it does not listen. If no socket of it was ever seen, the first
// question tells that it began no earlier than that.
func (s *Source) Asked(target string, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil && l.ask(since, time.Now()) {
		s.news = append(s.news, target)
		s.wakeRun()
	}
}

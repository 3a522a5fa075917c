// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// This file has what a listener learns from the probes of its targets and from the kubelet.

// Held tells the source whether a probe of the target is held.
func (s *Source) Held(target string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil && l.held != held {
		l.held = held
		s.wakeRun()
	}
}

// Ended tells the source that the target had ended before the source began to watch it. Without
// sockets, the source then does not take the target for one whose sockets it cannot see.
func (s *Source) Ended(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil {
		l.end(time.Now())
		s.wakeRun()
	}
}

// Declare begins the next instance of a target that has ended, although it does not listen
// yet. It reports whether an instance has begun.
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

// AttemptFailed tells the source that an attempt at the target has failed: if the sockets are
// gone, the instance has ended. The worker calls Look after AttemptFailed.
func (s *Source) AttemptFailed(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil {
		l.missedAt = time.Now()
	}
}

// InDoubt reports whether the sockets of the target are gone and nobody knows yet whether the
// target has ended. An attempt would tell.
func (s *Source) InDoubt(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.targets[target]
	return l != nil && !l.lostAt.IsZero()
}

// Asked tells the source that the kubelet asks about the target, whose container must have run
// since the given time at the latest. If the target ended long ago, its next instance begins,
// although it does not listen. If no socket of the target was ever seen, the first question
// means that the target began no earlier than that time.
func (s *Source) Asked(target string, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.targets[target]; l != nil && l.ask(since, time.Now()) {
		s.news = append(s.news, target)
		s.wakeRun()
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"sync"
	"time"
)

// Context returns a context that ends with the attempt, or when cancel is called, for
// what waits in its own way. If it is to tell a deadline, that is when an attempt of an
// agent that is not frozen has ended.
//
// As long as mine says that it is the agent itself that has yet to do something, the end
// is put off for a while: threads of one agent do not get to run in turn. It may be nil.
func (s *Stopwatch) Context(parent context.Context, tell bool, mine func() bool) (ctx context.Context, cancel func()) {
	inner, end := context.WithCancelCause(parent)
	s.mu.Lock()
	last, next := s.upTo.Add(s.timeout-s.spent+2*Stretch), s.next()
	if s.ended {
		end(context.DeadlineExceeded)
	}
	s.mu.Unlock()
	t := &timed{Context: parent, inner: inner, tell: tell, last: last}
	t.mu.Lock()
	defer t.mu.Unlock()
	more := Stretch
	t.timer = time.AfterFunc(time.Until(next), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.canceled {
			return
		}
		next, late, ended := s.Tick()
		switch {
		case !ended:
			t.timer.Reset(time.Until(next))
		case more > 0 && mine != nil && mine():
			more -= s.step
			t.timer.Reset(s.step)
		case more > 0 && late:
			// What has come while the agent was away has to be seen first.
			more = 0
			t.timer.Reset(s.step)
		default:
			end(context.DeadlineExceeded)
		}
	})
	return t, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.canceled = true
		t.timer.Stop()
		end(context.Canceled)
	}
}

// timed is a context that a stopwatch ends. To others its end is that of a deadline.
type timed struct {
	context.Context // whose values these are
	inner           context.Context
	tell            bool
	last            time.Time

	mu       sync.Mutex
	timer    *time.Timer
	canceled bool
}

// Deadline returns the deadline, if there is one to tell.
func (t *timed) Deadline() (time.Time, bool) {
	if !t.tell {
		return t.Context.Deadline()
	}
	if outer, ok := t.Context.Deadline(); ok && outer.Before(t.last) {
		return outer, true
	}
	return t.last, true
}

// Done returns what is closed at the end.
func (t *timed) Done() <-chan struct{} { return t.inner.Done() }

// Err returns why it has ended.
func (t *timed) Err() error {
	err := t.inner.Err()
	if err != nil && context.Cause(t.inner) == context.DeadlineExceeded { //nolint:errorlint // it is the very value
		err = context.DeadlineExceeded
	}
	return err
}

// AfterFunc is what package context looks for, to begin no goroutine.
func (t *timed) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(t.inner, f) }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"sync"
	"time"
)

// Context returns a context that ends with the attempt, or when cancel is called, for code that
// waits in its own way. If tell is true, the context has a deadline: the end of the attempt if
// the agent is not frozen.
//
// While mine, which may be nil, returns true, the agent itself has something to do; the end is
// then put off for a while, because another thread of the agent may not have run yet.
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
			// What arrived while the agent did not run must be seen first.
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

// timed is a context that a stopwatch ends, with the error of a passed deadline.
type timed struct {
	context.Context // for its values
	inner           context.Context
	tell            bool
	last            time.Time

	mu       sync.Mutex
	timer    *time.Timer
	canceled bool
}

// Deadline returns the deadline, if there is one.
func (t *timed) Deadline() (time.Time, bool) {
	if !t.tell {
		return t.Context.Deadline()
	}
	if outer, ok := t.Context.Deadline(); ok && outer.Before(t.last) {
		return outer, true
	}
	return t.last, true
}

// Done returns a channel that is closed at the end.
func (t *timed) Done() <-chan struct{} { return t.inner.Done() }

// Err returns why the context has ended.
func (t *timed) Err() error {
	err := t.inner.Err()
	if err != nil && context.Cause(t.inner) == context.DeadlineExceeded { //nolint:errorlint // it is exactly this value
		err = context.DeadlineExceeded
	}
	return err
}

// AfterFunc is for package context, which then starts no goroutine.
func (t *timed) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(t.inner, f) }

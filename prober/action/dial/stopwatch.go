// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

const (
	// steps is how many waits a timeout is divided into; maxStep bounds one of them.
	steps   = 8
	maxStep = time.Second

	// absence is the most that counts of a time in which the agent did not run. Beyond
	// that it was frozen.
	absence = 500 * time.Millisecond

	// Stretch is how much longer than its timeout an attempt takes when the agent hardly
	// got to run.
	Stretch = 750 * time.Millisecond

	// lateBytes is how much is read after the end of an attempt: more than all that an
	// answer may hold.
	lateBytes = 128 << 10
)

// A Stopwatch measures how much of its timeout a target has used up. A wall clock cannot
// do that: it runs on while the agent is frozen, or waits for a processor, and what
// comes meanwhile nobody is there to see.
//
// Whoever waits for the target waits in steps, and counts each. A step that takes longer
// than it should says that the agent did not run, so no more than its proper length is
// the target's. A freeze thus costs the target one step, however long it lasts.
//
// When the timeout is used up, what has come is looked for once more, without waiting.
// If there is nothing, the target was silent. If the agent lost much of its own time, the
// target gets more, to a bound, and was silent only if it was so for its whole timeout
// after the last thing that happened: so what the agent is slow at is not the target's.
type Stopwatch struct {
	mu sync.Mutex
	account

	moved atomic.Bool // something has come or was sent since the last count
}

// account is what a stopwatch knows. From upTo on it changes, and mu guards it.
type account struct {
	timeout, step time.Duration
	began         time.Time

	upTo    time.Time     // time is counted up to here
	spent   time.Duration // the target's time
	present time.Duration // the agent's: with what it lost, but for freezes
	silent  time.Duration // of present, since something came or was sent
	away    time.Duration // how long the agent did not run
	asked   bool          // something was sent
	frozen  bool          // the agent did not run for long
	ended   bool          // there is no more waiting
	gaveUp  bool          // whoever waited for a connection has been told so
	unseen  bool          // the target had done its part by then, and nobody saw it
	late    int           // how many bytes have been read since the end
}

// Start makes s a stopwatch that runs from now on.
func (s *Stopwatch) Start(timeout time.Duration) {
	now := time.Now()
	s.account = account{timeout: timeout, step: max(min(timeout/steps, maxStep), time.Millisecond), began: now, upTo: now}
	s.moved.Store(false)
}

// stopwatches are those that have been freed.
var stopwatches = sync.Pool{New: func() any { return new(Stopwatch) }}

// NewStopwatch returns a stopwatch that runs from now on.
func NewStopwatch(timeout time.Duration) *Stopwatch {
	s := stopwatches.Get().(*Stopwatch) //nolint:forcetypeassert // what the pool holds
	s.Start(timeout)
	return s
}

// Free gives s away, which nobody knows any more.
func (s *Stopwatch) Free() { stopwatches.Put(s) }

// Clone returns another stopwatch that goes on where s is.
func (s *Stopwatch) Clone() *Stopwatch {
	other := &Stopwatch{account: s.account}
	other.moved.Store(s.moved.Load())
	return other
}

// Move takes note that something has come from the target, or was sent to it.
func (s *Stopwatch) Move() {
	if !s.moved.Load() {
		s.moved.Store(true)
	}
}

// count counts the time up to now. It reports whether the agent was late to do so. With
// mu held.
func (s *Stopwatch) count(now time.Time) (late bool) {
	passed := now.Sub(s.upTo)
	s.upTo = now
	longest := s.step + s.step/4
	mine := min(passed, longest)
	s.spent += mine
	s.away += passed - mine
	s.frozen = s.frozen || passed > s.step+absence
	present := min(passed, max(absence, longest))
	s.present += present
	switch {
	case s.moved.Swap(false):
		s.asked, s.silent = true, 0
	case s.asked:
		s.silent += present
	}
	if s.spent >= s.timeout && !s.busy() || s.present >= s.timeout+Stretch {
		s.ended = true
	}
	return passed > longest
}

// busy says whether the agent has lost much of its time. With mu held.
func (s *Stopwatch) busy() bool {
	return s.present-s.spent > max(20*time.Millisecond, s.timeout/5)
}

// next returns when the step ends that has begun at the last count. With mu held.
func (s *Stopwatch) next() time.Time {
	if s.ended {
		return Past
	}
	step := s.step
	if left := s.timeout - s.spent; left > 0 {
		step = min(step, left)
	}
	return s.upTo.Add(step)
}

// Tick counts, and returns when to do so again, or that there is no more waiting.
func (s *Stopwatch) Tick() (next time.Time, late, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late = s.count(time.Now())
	return s.next(), late, s.ended
}

// Begin returns when the first step ends.
func (s *Stopwatch) Begin() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

// Over says whether there is no more waiting.
func (s *Stopwatch) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// giveUp takes note that whoever waited for a connection is told that there is no more
// waiting.
func (s *Stopwatch) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = true
}

// miss takes note that something came in time that nobody saw before the end.
func (s *Stopwatch) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unseen = s.ended
}

// outwait takes note that the end was put off, and that nothing came of a look-up even so.
// For the kubelet that is a failure.
func (s *Stopwatch) outwait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.silent = s.timeout
	}
}

// RanOut says whether err, which has ended an attempt, comes from its end. Some code drops
// the error of a connection and complains of what is missing then.
func (s *Stopwatch) RanOut(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gaveUp || s.ended && action.IsTimeout(err)
}

// Age returns how long ago s began.
func (s *Stopwatch) Age() time.Duration { return time.Since(s.began) }

// Left returns how much of the timeout there is.
func (s *Stopwatch) Left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout - s.spent
}

// Sleep waits. It returns false if the attempt has ended before that.
func (s *Stopwatch) Sleep(ctx context.Context, pause time.Duration) bool {
	until := time.Now().Add(pause)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
		next, _, ended := s.Tick()
		if ended {
			return false
		}
		left := time.Until(until)
		if left <= 0 {
			return true
		}
		timer.Reset(min(left, time.Until(next)))
	}
}

// Judge returns how an attempt counts that this stopwatch was for. A silence that may
// be the agent's own fault says nothing of the target. Neither does a connection that
// broke while the agent was frozen: servers hang up on who does not speak. An answer is
// one whenever it came.
func (s *Stopwatch) Judge(made action.Outcome, err error) (action.Outcome, error) {
	if err != nil || made.Success {
		return made, err
	}
	switch made.Reason {
	case action.HTTPStatus, action.GRPCNotServing, action.GRPCUnimplemented, action.ExitCode, action.Signal, action.ConnectionRefused:
		return made, nil
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	silence := made.Reason == action.Timeout && s.ended
	if !s.ended {
		s.count(time.Now())
	}
	theirs := !s.unseen && (!s.busy() || s.silent >= s.timeout)
	if silence && theirs || !silence && !s.frozen {
		return made, nil
	}
	err = fmt.Errorf("the agent itself did not run for %v during the attempt", s.away.Round(time.Millisecond))
	return action.Outcome{Reason: action.AgentLate, Output: err.Error()}, err
}

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

	// absence is the most that counts of a time in which the agent did not run. If the time
	// is longer, the agent was frozen.
	absence = 500 * time.Millisecond

	// Stretch is how much longer than its timeout an attempt may take if the agent hardly
	// got to run.
	Stretch = 750 * time.Millisecond

	// lateBytes is how much is read after the end of an attempt: more than any answer that
	// the agent reads.
	lateBytes = 128 << 10
)

// A Stopwatch measures how much of its timeout a target has used up. A wall clock cannot do
// that: it runs on while the agent is frozen or waits for a processor, and cannot see what
// arrives.
//
// The agent waits for the target in steps, and counts each. A step that takes too long means
// that the agent did not run, so only the proper length of the step counts against the target. A
// freeze thus costs the target one step, however long the freeze lasts.
//
// When the timeout is used up, the agent looks once more, without waiting, for what has arrived.
// If there is nothing, the target was silent. If the agent lost much of its own time, the target
// gets more time, up to a bound, and was silent only if nothing happened for its whole timeout:
// so the target does not pay for a slow agent.
type Stopwatch struct {
	mu sync.Mutex
	account

	moved atomic.Bool // something was received or sent since the last count
}

// account is the state of a stopwatch. mu guards the fields from upTo on.
type account struct {
	timeout, step time.Duration
	began         time.Time

	upTo    time.Time     // time is counted up to here
	spent   time.Duration // the target's time
	present time.Duration // the agent's time: lost time included, freezes excluded
	silent  time.Duration // the part of present since something was received or sent
	away    time.Duration // how long the agent did not run
	asked   bool          // something was sent
	frozen  bool          // the agent did not run for long
	ended   bool          // there is no more waiting
	gaveUp  bool          // the wait for a connection has ended for want of time
	unseen  bool          // the target had done its part by then, but the agent did not see that
	late    int           // bytes read since the end
}

// Start makes s a stopwatch that runs from now on.
func (s *Stopwatch) Start(timeout time.Duration) {
	now := time.Now()
	s.account = account{timeout: timeout, step: max(min(timeout/steps, maxStep), time.Millisecond), began: now, upTo: now}
	s.moved.Store(false)
}

// stopwatches holds freed stopwatches.
var stopwatches = sync.Pool{New: func() any { return new(Stopwatch) }}

// NewStopwatch returns a stopwatch that runs from now on.
func NewStopwatch(timeout time.Duration) *Stopwatch {
	s := stopwatches.Get().(*Stopwatch) //nolint:forcetypeassert // the pool holds nothing else
	s.Start(timeout)
	return s
}

// Free puts s into the pool. The caller must not use s any more.
func (s *Stopwatch) Free() { stopwatches.Put(s) }

// Clone returns a stopwatch that goes on from the state of s.
func (s *Stopwatch) Clone() *Stopwatch {
	other := &Stopwatch{account: s.account}
	other.moved.Store(s.moved.Load())
	return other
}

// Move records that something was received from the target or sent to it.
func (s *Stopwatch) Move() {
	if !s.moved.Load() {
		s.moved.Store(true)
	}
}

// count counts the time up to now. It reports whether the agent was late to count. The caller
// holds mu.
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

// busy reports whether the agent has lost much of its time. The caller holds mu.
func (s *Stopwatch) busy() bool {
	return s.present-s.spent > max(20*time.Millisecond, s.timeout/5)
}

// next returns the end of the step that began at the last count. The caller holds mu.
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

// Tick counts. It returns when to call Tick again, or that the attempt has ended.
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

// Over reports whether the attempt has ended.
func (s *Stopwatch) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// giveUp records that the wait for a connection ends because the attempt has ended.
func (s *Stopwatch) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = true
}

// miss records that something arrived in time but was not seen before the end.
func (s *Stopwatch) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unseen = s.ended
}

// outwait records that a look-up had no result even though the end was put off. For the kubelet
// that is a failure.
func (s *Stopwatch) outwait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.silent = s.timeout
	}
}

// RanOut reports whether an attempt failed with err because its time ran out. Some code drops the
// error of a connection and complains of what is then missing.
func (s *Stopwatch) RanOut(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gaveUp || s.ended && action.IsTimeout(err)
}

// Age returns how long ago s began.
func (s *Stopwatch) Age() time.Duration { return time.Since(s.began) }

// Left returns how much of the timeout is left.
func (s *Stopwatch) Left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout - s.spent
}

// Sleep waits for pause. It returns false if the attempt or ctx ended before that.
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

// Judge returns the outcome of the attempt that s has timed. A silence that may be the agent's
// own fault says nothing about the target. Neither does a connection that broke while the agent
// was frozen: servers close silent connections. An answer counts whenever it came.
func (s *Stopwatch) Judge(made action.Outcome, err error) (action.Outcome, error) {
	if err != nil || made.Success {
		return made, err
	}
	switch made.Reason {
	case action.HTTPStatus, action.HTTPBody, action.HTTPHeader, action.GRPCNotServing, action.GRPCUnimplemented, action.ExitCode, action.Signal, action.ConnectionRefused:
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

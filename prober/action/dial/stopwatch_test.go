// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

const ms = time.Millisecond

// run lets periods of time pass on a stopwatch and counts each at its end. A period of 0 means
// that something comes from the target. run returns with which period the attempt has ended, or
// 0 if it has not ended.
func run(s *Stopwatch, periods ...time.Duration) int {
	for i, passes := range periods {
		if passes == 0 {
			s.Move()
			continue
		}
		time.Sleep(passes)
		if _, _, ended := s.Tick(); ended {
			return i + 1
		}
	}
	return 0
}

// times returns period n times, and more.
func times(n int, period time.Duration, more ...time.Duration) []time.Duration {
	var list []time.Duration
	for range n {
		list = append(list, period)
	}
	return append(list, more...)
}

// A silent target has failed when its timeout is used up. A late end of a step uses up one
// step. An agent that loses much of its time gives the target 750 ms more. If the agent was
// away and the target has said something, nobody knows whose fault the timeout is.
func TestStopwatch(t *testing.T) {
	const theirs, ours = action.Timeout, action.AgentLate
	sent := func(then ...time.Duration) []time.Duration { return append([]time.Duration{0}, then...) }
	for name, c := range map[string]struct {
		timeout time.Duration
		periods []time.Duration
		ends    int // with which period the attempt ends
		reason  action.Reason
	}{
		"on time":                {time.Second, sent(times(8, 125*ms)...), 9, theirs},
		"a little late":          {time.Second, sent(times(8, 150*ms)...), 8, theirs},
		"never asked":            {time.Second, times(8, 125*ms), 8, theirs},
		"frozen for an hour":     {time.Second, sent(times(3, 125*ms, append(times(1, time.Hour), times(20, 125*ms)...)...)...), 12, theirs},
		"frozen at the end":      {time.Second, sent(times(7, 125*ms, append(times(1, time.Hour), times(20, 125*ms)...)...)...), 12, theirs},
		"busy":                   {time.Second, sent(times(20, 250*ms)...), 8, theirs},
		"very busy":              {100 * ms, sent(times(20, 120*ms)...), 9, theirs},
		"hardly ever there":      {100 * ms, sent(times(20, 10*time.Second)...), 3, theirs},
		"busy, and hears a byte": {100 * ms, sent(append(times(7, 120*ms), 0, 120*ms, 120*ms)...), 10, ours},
		"hears all the time":     {time.Second, []time.Duration{0, 125 * ms, 0, 125 * ms, 0, 125 * ms, 0, 125 * ms, 0, 125 * ms, 0, 125 * ms, 0, 125 * ms, 0, 125 * ms}, 16, theirs},
		"busy before it asked":   {100 * ms, []time.Duration{600 * ms, 600 * ms}, 2, ours},
		"of a millisecond":       {ms, sent(ms), 2, theirs},
		"of an hour":             {time.Hour, sent(times(3600, time.Second)...), 3601, theirs},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := NewStopwatch(c.timeout)
			if ended := run(s, c.periods...); ended != c.ends {
				t.Errorf("%s: ended with period %d, want %d", name, ended, c.ends)
			}
			got, err := s.Judge(action.Outcome{Reason: action.Timeout, Output: "late"}, nil)
			if got.Reason != c.reason || (err != nil) != (c.reason == ours) {
				t.Errorf("%s: got %+v, error %v, want %s", name, got, err, c.reason)
			}
		})
	}
}

// A connection that broke while the agent was frozen says nothing about the target, and neither
// does a deadline of the agent's own. An answer counts whenever it came. A failure counts if
// the agent was there.
func TestStopwatchJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []action.Reason{action.HTTPStatus, action.HTTPBody, action.HTTPHeader, action.GRPCNotServing, action.GRPCUnimplemented, action.ExitCode, action.Signal, action.ConnectionRefused}
		breaks := []action.Reason{action.Timeout, action.ConnectionReset, action.NoRoute, action.DNS, action.TLS, action.HTTPProtocol, action.GRPCStatus, action.Other}
		for _, frozen := range []time.Duration{0, 124 * ms, 625 * ms, 626 * ms, time.Minute} {
			for _, reason := range slices.Concat(breaks, answers) {
				s := NewStopwatch(time.Second)
				time.Sleep(frozen)
				want := action.Outcome{Reason: reason, Output: "what happened"}
				late := frozen > 625*ms && !slices.Contains(answers, reason)
				if late {
					away := (frozen - 156250*time.Microsecond).Round(ms) // the agent counts a step and a quarter as its own time
					want = action.Outcome{Reason: action.AgentLate, Output: fmt.Sprintf("the agent itself did not run for %v during the attempt", away)}
				}
				if got, err := s.Judge(action.Outcome{Reason: reason, Output: "what happened"}, nil); got != want || (err != nil) != late {
					t.Errorf("%s, frozen for %v: got %+v, error %v", reason, frozen, got, err)
				}
			}
		}
		s := NewStopwatch(time.Second)
		time.Sleep(time.Minute)
		failure := errors.New("not made")
		if got, err := s.Judge(action.Outcome{Reason: action.Other}, failure); got.Reason != action.Other || !errors.Is(err, failure) {
			t.Errorf("an error: got %+v, %v", got, err)
		}
		if got, err := s.Judge(action.Outcome{Success: true}, nil); !got.Success || err != nil {
			t.Errorf("a success: got %+v, %v", got, err)
		}
	})
}

// A look-up without a result is a failure, as for the kubelet, even if the agent was busy. Only
// the end of the attempt makes it one.
func TestStopwatchOutwaits(t *testing.T) {
	for ended, want := range map[bool]action.Reason{true: action.Timeout, false: action.AgentLate} {
		synctest.Test(t, func(t *testing.T) {
			s := NewStopwatch(100 * ms)
			if !ended {
				s.outwait()
			}
			run(s, 600*ms, 600*ms)
			if ended {
				s.outwait()
			}
			if got, _ := s.Judge(action.Outcome{Reason: action.Timeout}, nil); got.Reason != want {
				t.Errorf("ended %t: got %+v, want %s", ended, got, want)
			}
		})
	}
}

// A connection that the agent sees only after the end of the attempt makes the timeout the agent's
// own. A connection that the agent sees before the end does not.
func TestStopwatchMisses(t *testing.T) {
	for ended, want := range map[bool]action.Reason{true: action.AgentLate, false: action.Timeout} {
		synctest.Test(t, func(t *testing.T) {
			s := NewStopwatch(time.Second)
			if !ended {
				s.miss()
			}
			run(s, times(8, 125*ms)...)
			if ended {
				s.miss()
			}
			if got, _ := s.Judge(action.Outcome{Reason: action.Timeout}, nil); got.Reason != want {
				t.Errorf("ended %t: got %+v, want %s", ended, got, want)
			}
		})
	}
}

// The last step within the timeout ends with the timeout. Steps after that have their full length.
func TestStopwatchSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStopwatch(time.Second)
		for spent, want := range map[time.Duration]time.Duration{0: 125 * ms, 900 * ms: 100 * ms, time.Second: 125 * ms, 1100 * ms: 125 * ms} {
			s.spent = spent
			if got := time.Until(s.Begin()); got != want {
				t.Errorf("%v spent: a step of %v, want %v", spent, got, want)
			}
		}
		if s.ended = true; !s.Begin().Equal(Past) {
			t.Errorf("ended: a step until %v", s.Begin())
		}
	})
}

// If the wait for a connection has ended for want of time, any error is that of the time.
// Otherwise only a timeout after the end of the attempt is.
func TestStopwatchRanOut(t *testing.T) {
	for _, c := range []struct {
		gaveUp, ended bool
		err           error
		want          bool
	}{
		{true, false, io.EOF, true},
		{true, true, io.EOF, true},
		{false, true, io.EOF, false},
		{false, true, os.ErrDeadlineExceeded, true},
		{false, false, os.ErrDeadlineExceeded, false},
	} {
		s := NewStopwatch(time.Second)
		s.ended = c.ended
		if c.gaveUp {
			s.giveUp()
		}
		if got := s.RanOut(c.err); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}

// key is the key of a value in a context.
type key struct{}

// A context ends with its attempt, as at a deadline. The context ends at once if it or its
// parent is canceled. It does not end before the agent has done its part.
func TestStopwatchContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(of, mine time.Duration, cancelParent bool) (took time.Duration, err, childErr error) {
			began := time.Now()
			parent, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			defer stop()
			ctx, cancel := NewStopwatch(of).Context(parent, true, func() bool { return time.Since(began) < mine })
			defer cancel()
			child, done := context.WithTimeout(ctx, time.Hour)
			defer done()
			if cancelParent {
				stop()
			}
			if until, ok := ctx.Deadline(); !ok || until.Sub(began) != of+2*Stretch || ctx.Value(key{}) != "value" || ctx.Err() != nil != cancelParent {
				t.Errorf("deadline %v, %v, value %v, error %v", until.Sub(began), ok, ctx.Value(key{}), ctx.Err())
			}
			<-child.Done()
			return time.Since(began), ctx.Err(), child.Err()
		}
		for _, c := range []struct {
			mine         time.Duration
			cancelParent bool
			took         time.Duration
			err          error
		}{
			{0, false, time.Second, context.DeadlineExceeded},
			{1200 * ms, false, 1250 * ms, context.DeadlineExceeded},
			{time.Hour, false, 1750 * ms, context.DeadlineExceeded},
			{0, true, 0, context.Canceled},
		} {
			if took, err, childErr := wait(time.Second, c.mine, c.cancelParent); took != c.took || !errors.Is(err, c.err) || !errors.Is(childErr, c.err) {
				t.Errorf("%+v: took %v, errors %v, %v", c, took, err, childErr)
			}
		}
	})
}

// The deadline of a context is the earlier of its parent's and its attempt's.
func TestStopwatchContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for parent, want := range map[time.Duration]time.Duration{500 * ms: 500 * ms, time.Hour: time.Second + 2*Stretch} {
			outer, stop := context.WithTimeout(t.Context(), parent)
			ctx, cancel := NewStopwatch(time.Second).Context(outer, true, nil)
			if until, ok := ctx.Deadline(); !ok || time.Until(until) != want {
				t.Errorf("parent's in %v: deadline in %v, %t; want %v", parent, time.Until(until), ok, want)
			}
			cancel()
			stop()
		}
	})
}

// If the agent is late for the end of an attempt, the context's end waits for one more step, and
// not for another, however late the agent is again.
func TestStopwatchContextWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := NewStopwatch(time.Second), time.Now()
		delay := func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.upTo = s.upTo.Add(-40 * ms)
			return false
		}
		ctx, cancel := s.Context(t.Context(), false, delay)
		defer cancel()
		time.Sleep(990 * ms)
		delay()
		<-ctx.Done()
		if took := time.Since(began); took != 1125*ms {
			t.Errorf("took %v, want 1.125s", took)
		}
	})
}

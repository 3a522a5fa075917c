// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
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
		answers := []action.Reason{action.HTTPStatus, action.GRPCNotServing, action.GRPCUnimplemented, action.ExitCode, action.Signal, action.ConnectionRefused}
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

// pair returns a connection to a server of this process.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	served := make(chan net.Conn, 1)
	address := actiontest.Raw(t, func(conn net.Conn) {
		served <- conn
		<-t.Context().Done()
	})
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client, <-served
}

// After the end of an attempt, reads return up to 128 KiB that have arrived, and the end of the
// stream. They do not wait for more.
func TestTimedConnLooks(t *testing.T) {
	client, server := pair(t)
	s := NewStopwatch(time.Hour)
	conn := &TimedConn{Conn: client, Watch: s}
	s.spent = s.timeout
	s.Tick()
	past := conn.SetDeadline(time.Time{})
	buffer := make([]byte, 300<<10)
	if n, err := conn.Read(buffer); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || past != nil {
		t.Errorf("read %d bytes, error %v, from a silent server", n, err)
	}
	if n, err := conn.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d bytes, error %v", n, err)
	}
	go func() {
		server.Write([]byte("answer"))
		server.(*net.TCPConn).CloseWrite()
	}()
	var heard []byte
	testutil.Until(t, "the client has read the answer and its end", func() bool {
		n, err := conn.Read(buffer)
		heard = append(heard, buffer[:n]...)
		return errors.Is(err, io.EOF)
	})
	if string(heard) != "answer" {
		t.Errorf("read %q", heard)
	}

	client, flood := pair(t)
	conn = &TimedConn{Conn: client, Watch: s}
	_ = conn.SetDeadline(time.Time{})
	go func() { _, _ = flood.Write(make([]byte, 1<<20)) }()
	read := len(heard)
	testutil.Until(t, "the client reads no more", func() bool {
		n, err := conn.Read(buffer)
		read += n
		return n == 0 && read == lateBytes && errors.Is(err, os.ErrDeadlineExceeded)
	})
}

// A deadline of the user's own holds, however long the attempt may take.
func TestTimedConnDeadline(t *testing.T) {
	client, _ := pair(t)
	conn := &TimedConn{Conn: client, Watch: NewStopwatch(time.Hour)}
	_ = conn.SetDeadline(time.Time{})
	_ = conn.SetReadDeadline(time.Now().Add(20 * ms))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || conn.Watch.Over() {
		t.Errorf("error %v", err)
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Errorf("error %v of a write", err)
	}
}

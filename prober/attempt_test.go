// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// The agent tries three times to make an attempt. If it cannot, the attempt counts as unknown,
// and neither breaks nor extends a run. A failed attempt is not tried again.
func TestUnknownIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		answers := []any{bad, errors.New("no such command"), bad, errors.New("no such command"), bad}
		turn := func() int { return int(time.Since(w.begin) / time.Second) }
		w.on("app/liveness", func(context.Context) (action.Outcome, error) {
			switch a := answers[turn()].(type) {
			case error:
				return action.Outcome{Reason: action.ExecStart}, a
			case action.Outcome:
				return a, nil
			}
			panic("unreachable")
		})
		w.apply(app("app", nil, nil, every(time.Second)))
		w.sleepUntil(3 * time.Second)
		w.is("app", "SRL")
		w.sleepUntil(4 * time.Second)
		w.is("app", "SRl")
		equal(t, "attempts", w.at("app/liveness"), 0, time.Second, time.Second, time.Second,
			2*time.Second, 3*time.Second, 3*time.Second, 3*time.Second, 4*time.Second)
		p := w.probe("app", gate.Liveness)
		if p.counted() != "0/3/2" || fmt.Sprint(p.Failures) != "[{connection_refused 3} {exec_start 2}]" {
			t.Errorf("counted %s, %v", p.counted(), p.Failures)
		}
	})
}

// A success in the third try counts. Each try has the full timeout.
func TestThirdTryCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		tries := 0
		w.on("app/readiness", func(context.Context) (action.Outcome, error) {
			if tries++; tries < 3 {
				time.Sleep(900 * ms)
				return action.Outcome{}, errors.New("body: unexpected EOF")
			}
			return good, nil
		})
		w.apply(app("app", nil, every(10*time.Second), nil))
		w.sleepUntil(5 * time.Second)
		equal(t, "tries", w.at("app/readiness"), 0, 900*ms, 1800*ms)
		p := w.probe("app", gate.Readiness)
		if p.counted() != "1/0/0" || p.Durations.Successful.Sum != 1.8 {
			t.Errorf("counted %s with a duration of %v s; want one success of 1.8 s", p.counted(), p.Durations.Successful.Sum)
		}
	})
}

// A timeout counts as a failure, however long the attempt took: the action decides whether the
// timeout is the target's fault.
func TestTimeoutOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.takes("app/readiness", time.Second, action.Outcome{Reason: action.Timeout})
		w.takes("app/liveness", 1200*ms, action.Outcome{Reason: action.Timeout}) // a child of the attempt was slow to die
		w.apply(app("app", nil, every(10*time.Second), every(10*time.Second)))
		w.sleepUntil(2 * time.Second)
		for _, k := range []gate.Kind{gate.Readiness, gate.Liveness} {
			if p := w.probe("app", k); p.counted() != "0/1/0" || p.Reason != action.Timeout {
				t.Errorf("%v: %s, %q; want one failure for timeout", k, p.counted(), p.Reason)
			}
		}
	})
}

// An attempt that ends after its instance counts as an attempt and says nothing about the new
// instance. The new instance has started at once, because the target has no startup probe.
func TestAttemptAcrossInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		p := every(time.Hour)
		p.FailureThreshold = 1
		w.takes("app/liveness", 500*ms, bad)
		w.apply(app("app", nil, nil, p))
		w.sleepUntil(200 * ms)
		w.m.NewInstance("app")
		w.takes("app/liveness", time.Hour, bad)
		w.sleepUntil(600 * ms)
		w.is("app", "SRL")
		if p := w.probe("app", gate.Liveness); p.ConsecutiveFailures != 0 || p.Transitions != 0 || p.counted() != "0/1/0" {
			t.Errorf("after an attempt of the old instance: %+v", p)
		}
		if s, _ := w.m.Target("app", Brief); s.StartupDuration != 0 {
			t.Errorf("startup took %v, want 0", s.StartupDuration)
		}
	})
}

// The agent catches a panic in an action, counts the panic and logs it with its stack. The next
// turn comes as usual.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.on("app/liveness", func(context.Context) (action.Outcome, error) { panic("boom") })
		w.apply(app("app", nil, nil, every(time.Second)))
		w.sleepUntil(3 * time.Second)
		w.is("app", "SRL")
		if got := w.m.Status(Brief).Panics; got != 4 {
			t.Errorf("%d panics counted, want 4", got)
		}
		if p := w.probe("app", gate.Liveness); p.counted() != "0/0/4" {
			t.Errorf("counted %s, want 4 unknown", p.counted())
		}
		if log := w.logged(); !strings.Contains(log, "panic=boom") || !strings.Contains(log, "attempt.go") {
			t.Errorf("the log does not mention the panic: %s", log)
		}
	})
}

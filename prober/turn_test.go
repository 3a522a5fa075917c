// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

const ms = time.Millisecond

// A sidecar's probe makes its first attempt at once, and the others one period apart.
func TestFirstTurnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", nil, every(10*time.Second), every(250*ms)))
		w.sleepUntil(20 * time.Second)
		equal(t, "readiness", w.at("app/readiness"), 0, 10*time.Second, 20*time.Second)
		if got := w.at("app/liveness"); len(got) != 81 || got[1] != 250*ms {
			t.Errorf("liveness every 250 ms: %d attempts in 20 s, the second at %v; want 81, 250 ms", len(got), got[1])
		}
	})
}

// The app starts after 150 ms. Readiness and liveness take their turns when the startup probe
// succeeds, not up to a period later, and their grid begins there.
func TestStartupSuccessPokes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.takes("app/startup", 150*ms, good)
		w.apply(app("app", every(time.Second), every(10*time.Second), every(10*time.Second)))
		w.is("app", "srL")
		w.sleepUntil(149 * ms)
		w.is("app", "srL")
		if p := w.probe("app", gate.Readiness); !p.Gated || p.Held {
			t.Errorf("before started: gated %t, held %t; want gated", p.Gated, p.Held)
		}
		w.sleepUntil(151 * ms)
		w.is("app", "SRL")
		if p := w.probe("app", gate.Startup); p.Gated || !p.Held || p.Result != gate.Success {
			t.Errorf("startup after success: %+v, want held", p)
		}
		w.sleepUntil(25 * time.Second)
		equal(t, "startup", w.at("app/startup"), 0)
		equal(t, "readiness", w.at("app/readiness"), 150*ms, 10150*ms, 20150*ms)
		equal(t, "liveness", w.at("app/liveness"), 150*ms, 10150*ms, 20150*ms)
		if s, _ := w.m.Target("app", Brief); s.StartupDuration != 150*ms {
			t.Errorf("startup took %v, want 150 ms", s.StartupDuration)
		}
	})
}

// After an attempt of 2.5 s with a period of 1 s, one late turn comes at once. Then the turns
// return to the grid of full seconds.
func TestSlowProbeKeepsTheGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		slow := every(time.Second)
		slow.Timeout = 5 * time.Second
		w.takes("app/readiness", 2500*ms, good)
		w.apply(app("app", nil, slow, nil))
		w.sleepUntil(time.Second)
		w.says("app/readiness", good)
		w.sleepUntil(5 * time.Second)
		equal(t, "readiness", w.at("app/readiness"), 0, 2500*ms, 3*time.Second, 4*time.Second, 5*time.Second)
		if l := w.m.Status(Series).Lateness; l.Sum != 0 || l.Count != 5 {
			t.Errorf("lateness %v s over %d turns, want 0 over 5: a slow target does not make the agent late", l.Sum, l.Count)
		}
	})
}

// A manual trigger at 3.2 s takes a turn at once, and the next turn comes a full period later.
// A trigger during an attempt waits for the end of the attempt.
func TestManualTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", nil, every(10*time.Second), nil))
		w.sleepUntil(3200 * ms)
		if !w.m.Probe("app") || w.m.Probe("nobody") {
			t.Error("Probe must find app and nobody else")
		}
		w.sleepUntil(4 * time.Second)
		w.takes("app/readiness", 300*ms, good)
		w.sleepUntil(13300 * ms) // 100 ms into the attempt that began at 13.2 s
		w.m.Probe("app")
		w.m.Probe("app")
		w.sleepUntil(24 * time.Second)
		equal(t, "readiness", w.at("app/readiness"), 0, 3200*ms, 13200*ms, 13500*ms, 23500*ms)
	})
}

// With a delay of 2.5 s and a period of 1 s, the probe is gated at 2 s and makes its first
// attempt at 3 s.
func TestInitialDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		p := every(time.Second)
		p.InitialDelay = 2500 * ms
		w.apply(app("app", nil, p, nil))
		w.sleepUntil(2 * time.Second)
		if p := w.probe("app", gate.Readiness); !p.Gated || p.Result != gate.Failure || !p.LastRun.IsZero() {
			t.Errorf("at 2 s: %+v, want gated with the initial Failure", p)
		}
		w.sleepUntil(3 * time.Second)
		equal(t, "readiness", w.at("app/readiness"), 3*time.Second)
		w.is("app", "SRL")
	})
}

// Three failures in a row fail liveness. The agent does not hold a static target, which
// recovers with the next success.
func TestStaticRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/liveness", bad)
		w.apply(app("app", nil, nil, every(time.Second)))
		w.sleepUntil(1999 * ms)
		w.is("app", "SRL")
		w.sleepUntil(2 * time.Second)
		w.is("app", "SRl")
		if got := w.m.Summary(); got != (Summary{Loaded: true, Targets: 1, Started: 1, Ready: 1, Live: 0}) {
			t.Errorf("summary %+v", got)
		}
		w.sleepUntil(6 * time.Second)
		p := w.probe("app", gate.Liveness)
		if p.Held || p.ConsecutiveFailures != 7 || p.Reason != action.ConnectionRefused || p.Transitions != 1 || p.counted() != "0/7/0" {
			t.Errorf("after 7 failures: %+v", p)
		}
		if want := []ReasonCount{{action.ConnectionRefused, 7}}; !slices.Equal(p.Failures, want) {
			t.Errorf("failures %v, want %v", p.Failures, want)
		}
		w.says("app/liveness", good)
		w.sleepUntil(7 * time.Second)
		w.is("app", "SRL")
		if p := w.probe("app", gate.Liveness); p.Transitions != 2 || p.ConsecutiveFailures != 0 || p.Reason != "" || p.counted() != "1/7/0" {
			t.Errorf("after the recovery: %+v", p)
		}
	})
}

// With one attempt in flight at a time, the second of two probes begins when the first has
// ended, and its lateness counts.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 1, files: HighestInFlight})
		w.takes("a/readiness", 300*ms, good)
		w.takes("b/readiness", 300*ms, good)
		w.apply(app("a", nil, every(10*time.Second), nil), app("b", nil, every(10*time.Second), nil))
		if got := w.m.Status(Brief).InFlight; got != 1 {
			t.Errorf("%d in flight, want 1", got)
		}
		w.sleepUntil(time.Second)
		both := append(w.at("a/readiness"), w.at("b/readiness")...)
		slices.Sort(both)
		equal(t, "attempts", both, 0, 300*ms)
		if l := w.m.Status(Series).Lateness; l.Sum != 0.3 || l.Count != 2 {
			t.Errorf("lateness %v s over %d turns, want 0.3 over 2", l.Sum, l.Count)
		}
	})
}

// A turn that has not begun 30 s after its time is overdue. So is an attempt that has not ended
// 30 s after the time of its tries.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 1, files: HighestInFlight})
		free := make(chan struct{})
		w.on("a/readiness", func(context.Context) (action.Outcome, error) { <-free; return good, nil })
		w.apply(app("a", nil, every(time.Second), nil))
		w.sleepUntil(500 * ms)
		w.apply(app("a", nil, every(time.Second), nil), app("b", nil, every(time.Second), nil))
		w.sleepUntil(30 * time.Second)
		if got := w.m.Overdue(); got != nil {
			t.Errorf("at 30 s: %q overdue, want none", got)
		}
		w.sleepUntil(30600 * ms)
		if got := fmt.Sprint(w.m.Overdue()); got != "[b/readiness]" {
			t.Errorf("at 30.6 s: %s overdue, want b", got)
		}
		w.sleepUntil(33100 * ms)
		if got := fmt.Sprint(w.m.Overdue()); got != "[a/readiness b/readiness]" {
			t.Errorf("at 33.1 s: %s overdue, want both", got)
		}
		close(free)
		w.sleepUntil(34 * time.Second)
		if got := w.m.Overdue(); got != nil {
			t.Errorf("at 34 s: %q overdue, want none", got)
		}
	})
}

// An attempt that may last as long as a file can say, with a period as long, is not overdue
// after a minute.
func TestOverdueOfTheLongestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		longest := every(math.MaxInt32 * time.Second)
		longest.Timeout = longest.Period
		w.takes("app/readiness", time.Hour, good)
		w.apply(app("app", nil, longest, nil))
		w.sleepUntil(time.Minute)
		if got := w.m.Overdue(); got != nil {
			t.Errorf("%q overdue, want none", got)
		}
	})
}

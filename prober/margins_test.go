// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// script makes the attempts of a probe end as the letters say: . succeeds, x fails, ? is unknown.
// Attempts after the last letter succeed.
func (w *world) script(name, letters string) {
	i := 0
	w.on(name, func(context.Context) (action.Outcome, error) {
		i++
		switch {
		case i > len(letters) || letters[i-1] == '.':
			return good, nil
		case letters[i-1] == 'x':
			return bad, nil
		}
		return action.Outcome{Reason: action.ExecStart}, errPanic // which is not tried again
	})
}

// ran returns how many runs a probe has had, their sum, and the near misses: none for a probe
// without series.
func ran(p ProbeStatus) string {
	if p.Runs == nil {
		return "none"
	}
	return fmt.Sprintf("%d runs, sum %v, %d near", p.Runs.Lengths.Count, p.Runs.Lengths.Sum, p.Runs.NearMisses)
}

func lastHour(p ProbeStatus) string {
	if p.LastHour == nil {
		return "nothing"
	}
	return fmt.Sprintf("run %d, %v, succeeded %t", p.LastHour.WorstRun, p.LastHour.SlowestSuccess, p.LastHour.Succeeded)
}

// A run is every failure in a row, and counts when a success ends the run. An unknown attempt
// neither ends nor extends a run. A near miss is one failure short of the threshold: neither a
// shorter run, nor a run that reached the threshold, nor any run if one failure is enough.
func TestRuns(t *testing.T) {
	for letters, tt := range map[string]struct {
		threshold  int
		want, hour string
	}{
		"....":          {3, "none", "run 0, 0s, succeeded true"},
		".?.":           {3, "none", "run 0, 0s, succeeded true"},
		".x.":           {3, "1 runs, sum 1, 0 near", "run 1, 0s, succeeded true"},
		".xx.":          {3, "1 runs, sum 2, 1 near", "run 2, 0s, succeeded true"},
		"xx..xx.x":      {3, "3 runs, sum 5, 2 near", "run 2, 0s, succeeded true"},
		".x?x.":         {3, "1 runs, sum 2, 1 near", "run 2, 0s, succeeded true"},
		".xxx.":         {3, "1 runs, sum 3, 0 near", "run 3, 0s, succeeded true"},
		".xxxxx.xx.":    {3, "2 runs, sum 7, 1 near", "run 5, 0s, succeeded true"},
		".x..x":         {1, "2 runs, sum 2, 0 near", "run 1, 0s, succeeded true"},
		".x..xx":        {2, "2 runs, sum 3, 1 near", "run 2, 0s, succeeded true"},
		"xxxxxxxxxxxxx": {99, "none yet", "run 12, 0s, succeeded false"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			w.script("app/liveness", letters)
			live := every(time.Second)
			live.FailureThreshold = tt.threshold
			w.apply(app("app", nil, nil, live))
			w.sleepUntil(11500 * ms)
			p := w.probe("app", gate.Liveness)
			if tt.want == "none yet" { // an open run has a counter at 0, so that its end is an increase
				tt.want = "0 runs, sum 0, 0 near"
			}
			if got := ran(p); got != tt.want {
				t.Errorf("%s with threshold %d: %s, want %s", letters, tt.threshold, got, tt.want)
			}
			if got := lastHour(p); got != tt.hour {
				t.Errorf("%s: in the last hour %s, want %s", letters, got, tt.hour)
			}
		})
	}
}

// A probe that is quick and does not fail has no memory for margins. A success is slow from a tenth of
// the timeout on.
func TestMarginsTakeNoMemory(t *testing.T) {
	for took, want := range map[time.Duration]string{0: "", 99 * ms: "", 100 * ms: "100ms", 830 * ms: "830ms"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			w.takes("app/liveness", took, good)
			w.apply(app("app", nil, nil, every(time.Second)))
			w.sleepUntil(5 * time.Second)
			has := w.m.find("app").workers[0].others != nil
			if p := w.probe("app", gate.Liveness); has != (want != "") || p.Runs != nil || has && p.LastHour.SlowestSuccess.String() != want {
				t.Errorf("successes of %v: memory %t, in the last hour %s, runs %s", took, has, lastHour(p), ran(p))
			}
		})
	}
}

// A copy of the counters does not change with the original.
func TestRunsClone(t *testing.T) {
	var c counts
	c.need().margins.runs.add(2, runBounds[:])
	n := c.cloneCounts()
	c.others.margins.runs.add(2, runBounds[:])
	if got := n.others.margins.runs.count(); got != 1 {
		t.Errorf("the copy has %d runs, want 1", got)
	}
}

// A new instance ends a run that then never counts: two failures, a new instance and one failure are
// one run of 1, and no near miss. The last hour has 3 failures in a row, as the threshold counts.
func TestRunsEndWithTheInstance(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.LivenessProbe.FailureThreshold = 4
		w.apply(c)
		v.sees(runs("1"))
		w.sleepUntil(3100 * ms)
		w.says("app/liveness", bad)
		w.sleepUntil(5100 * ms)
		before := w.probe("app", gate.Liveness)
		v.sees(runs("2"))
		w.script("app/liveness", "x")
		w.sleepUntil(20 * time.Second)
		after := w.probe("app", gate.Liveness)
		if before.ConsecutiveFailures != 2 || ran(before) != "0 runs, sum 0, 0 near" {
			t.Errorf("before: %d failures, %s", before.ConsecutiveFailures, ran(before))
		}
		if ran(after) != "1 runs, sum 1, 0 near" || after.LastHour.WorstRun != 3 {
			t.Errorf("after: %s, in the last hour %s; want one run of 1, and 3", ran(after), lastHour(after))
		}
	})
}

// A reload keeps the runs and the last hour of a probe, also during a run. If the reload changes
// the threshold, the run does not count and the last hour begins anew; if it changes the target's
// labels, the series begin anew and the last hour does not.
func TestRunsOverAReload(t *testing.T) {
	for name, tt := range map[string]struct {
		change       func(*config.Target)
		runs, before string
		hour         string // after one more failure and a success
	}{
		"nothing":   {func(*config.Target) {}, "2 runs, sum 5, 1 near", "run 2, 200ms, succeeded true", "run 3, 200ms, succeeded true"},
		"period":    {func(c *config.Target) { c.LivenessProbe.Period = 2 * time.Second }, "2 runs, sum 5, 1 near", "run 2, 200ms, succeeded true", "run 3, 200ms, succeeded true"},
		"timeout":   {func(c *config.Target) { c.LivenessProbe.Timeout = 3 * time.Second }, "2 runs, sum 5, 1 near", "nothing", "run 3, 0s, succeeded true"},
		"threshold": {func(c *config.Target) { c.LivenessProbe.FailureThreshold = 4 }, "2 runs, sum 3, 1 near", "run 1, 0s, succeeded false", "run 1, 0s, succeeded true"},
		"labels": {
			func(c *config.Target) { c.Labels = []config.Label{{Name: "a", Value: "b"}} },
			"1 runs, sum 3, 0 near", "run 2, 200ms, succeeded true", "run 3, 200ms, succeeded true",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			w.takes("app/liveness", 200*ms, good)
			w.apply(app("app", nil, nil, every(time.Second)))
			w.sleepUntil(900 * ms)
			w.script("app/liveness", "xx.xx")
			w.sleepUntil(5900 * ms)
			changed := app("app", nil, nil, every(time.Second))
			tt.change(&changed)
			w.script("app/liveness", "x.")
			w.apply(changed)
			if got := lastHour(w.probe("app", gate.Liveness)); got != tt.before {
				t.Errorf("%s: right after the reload %s, want %s", name, got, tt.before)
			}
			w.sleepUntil(12 * time.Second)
			p := w.probe("app", gate.Liveness)
			if ran(p) != tt.runs || lastHour(p) != tt.hour {
				t.Errorf("%s: %s, in the last hour %s; want %s, %s", name, ran(p), lastHour(p), tt.runs, tt.hour)
			}
		})
	}
}

// The last hour forgets a failure and a slow success 60 to 70 minutes later. A probe that has made no
// attempt for an hour says nothing.
func TestLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.takes("app/liveness", 830*ms, good)
		w.says("app/readiness", good)
		held := app("held", every(time.Second), nil, nil)
		w.apply(app("app", nil, every(10*time.Second), every(10*time.Second)), held)
		w.sleepUntil(5 * time.Second)
		w.script("app/liveness", "xx")
		w.sleepUntil(59 * time.Minute)
		if got := lastHour(w.probe("app", gate.Liveness)); got != "run 2, 830ms, succeeded true" {
			t.Errorf("after 59 min: %s", got)
		}
		w.sleepUntil(71 * time.Minute)
		if got := lastHour(w.probe("app", gate.Liveness)); got != "run 0, 0s, succeeded true" {
			t.Errorf("after 71 min: %s", got)
		}
		if got := lastHour(w.probe("held", gate.Startup)); got != "nothing" {
			t.Errorf("a startup probe that succeeded 71 min ago: %s", got)
		}
	})
}

// The clock may be set. What happens shortly before the newest slot counts for that slot; after a jump
// of more than an hour in either direction, the hour is empty.
func TestHourAndTheClock(t *testing.T) {
	begin := time.Date(2026, 12, 1, 12, 5, 0, 0, time.UTC)
	for back, want := range map[time.Duration]string{
		0: "2 900ms", 10 * time.Minute: "2 900ms", 65 * time.Minute: "2 900ms", 80 * time.Minute: "0 0s",
		-59 * time.Minute: "2 900ms", -70 * time.Minute: "0 0s", -10000 * time.Hour: "0 0s",
	} {
		var h hour
		h.fail(begin, 2)
		h.fail(begin, 1)
		h.succeed(begin, 900*ms)
		h.succeed(begin, 400*ms)
		for range 2 { // a look changes nothing
			run, slowest := h.worstAt(begin.Add(-back))
			if got := fmt.Sprint(run, " ", slowest); got != want {
				t.Errorf("%v back: %s, want %s", back, got, want)
			}
		}
		h.fail(begin.Add(-back), 1)
		if run, _ := h.worstAt(begin.Add(-back)); run == 0 {
			t.Errorf("%v back: a new failure is not there", back)
		}
	}
	var h hour
	h.fail(begin, 1<<40)
	h.succeed(begin, 1000*time.Hour)
	if run, slowest := h.worstAt(begin); run != 1<<16-1 || slowest < time.Hour {
		t.Errorf("beyond what an hour can hold: %d, %v", run, slowest)
	}
}

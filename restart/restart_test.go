// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// running is a world whose agent is 1 min old, and whose target app runs as instance a.
func running(t *testing.T, more ...func(*config.Target)) *world {
	w := newWorld(t)
	w.view.runs("app", "a")
	w.apply(app("app", more...))
	w.sleep(time.Minute)
	return w
}

// A target whose liveness probe fails is restarted at once, once, and the next instance gets
// nothing of it.
func TestActsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.does(func(context.Context, *request) error {
			w.says("app", "good")
			w.view.runs("app", "b")
			return nil
		})
		w.want(0, "while it lives")
		w.says("app", "bad")
		w.sleep(3 * time.Second)
		w.want(1, "after the failures")
		if a := w.made()[0]; a.instance != "a" || a.at > 62*time.Second+50*time.Millisecond {
			t.Errorf("got %+v, want instance a, at the second failure", a)
		}
		w.sleep(time.Hour)
		w.want(1, "an hour later")

		s := w.status("app")
		a := s.Acts[0]
		if len(s.Acts) != 1 || a.Result != Succeeded || a.Instance != "a" || a.Kind != gate.Liveness || a.Reason != "http_status" ||
			a.Failures != 2 || a.Threshold != 2 || a.Handler != "exec" || s.Counts != (Counts{Succeeded: 1}) || s.Wanted || s.Current != nil {
			t.Errorf("got %+v", s)
		}
		if strings.Contains(fmt.Sprint(s)+w.log.String(), "s3cret") || !strings.Contains(a.Output, "status 500") {
			t.Errorf("the output is %q in\n%s", a.Output, w.log.String())
		}
		if n := w.log.Count("level=WARN", `msg="restarting the target"`, "target=app", "instance_id=a", "probe_type=Liveness",
			"reason=http_status", "attempt=2/2", "handler=exec", `output="status 500`); n != 1 {
			t.Errorf("%d lines say so:\n%s", n, w.log.String())
		}
		if len(w.told) != 2 || w.told[0].Result != "" || w.told[1].Result != Succeeded {
			t.Errorf("told %+v", w.told)
		}
	})
}

// What is not a verdict is not acted on: readiness, unknown outcomes, and a source without a
// clear view (rules 1 and 4).
func TestNoVerdict(t *testing.T) {
	live := func(s string) func(w *world) { return func(w *world) { w.says("app", s) } }
	for name, c := range map[string]struct {
		more  func(*config.Target)
		event func(w *world)
	}{
		"lives":    {nil, live("good")},
		"unknown":  {nil, live("unknown")},
		"no block": {func(c *config.Target) { c.Restart = nil }, live("bad")},
		"readiness": {func(c *config.Target) {
			c.ReadinessProbe = c.LivenessProbe
			c.LivenessProbe = nil
		}, live("bad")},
		"gone": {nil, func(w *world) {
			w.says("app", "bad")
			w.view.sets("app", true, func(i *gate.Instance, _ *instance.Details) { i.Phase = gate.Terminated })
		}},
		"frozen": {nil, func(w *world) {
			w.says("app", "bad")
			w.view.sets("app", true, func(i *gate.Instance, d *instance.Details) { i.Phase, d.Paused = gate.PhaseUnknown, true })
		}},
		"deleted": {nil, func(w *world) {
			w.says("app", "bad")
			w.view.sets("app", true, func(i *gate.Instance, _ *instance.Details) { i.Deleting = true })
		}},
		"back from a gap": {func(c *config.Target) { c.LivenessProbe.Period = time.Hour }, func(w *world) {
			w.view.sets("app", true, func(i *gate.Instance, _ *instance.Details) { i.Phase = gate.Terminated })
			w.view.sets("app", true, func(i *gate.Instance, _ *instance.Details) { i.Phase = gate.Running })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				more := c.more
				if more == nil {
					more = func(*config.Target) {}
				}
				w := running(t, more)
				c.event(w)
				w.sleep(time.Hour)
				w.want(0, "an hour later")
			})
		})
	}
}

// One act of a target is under way at a time, and targets do not wait for each other.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"a", "b"} {
			w.view.runs(name, name)
		}
		w.apply(app("a"), app("b"))
		w.sleep(time.Minute)
		w.does(func(context.Context, *request) error {
			time.Sleep(time.Hour)
			return nil
		})
		w.says("a", "bad")
		w.says("b", "bad")
		w.sleep(59 * time.Minute)
		w.apply(app("a"), app("b", func(c *config.Target) { c.LivenessProbe.FailureThreshold = 1 })) // a reload cuts no act short
		if made := w.made(); len(made) != 2 || made[0].target == made[1].target {
			t.Errorf("got %+v, want one of each target", made)
		}
		if s := w.status("b"); s.Current == nil || s.Current.Duration < 58*time.Minute || s.Current.Result != "" || s.Wanted {
			t.Errorf("got %+v, want an act of 59 min", s)
		}
		w.sleep(time.Minute + 15*time.Second)
		w.want(4, "10 s after the ends")
	})
}

// A block costs a goroutine and a subscription; without one there is none, also after a reload
// that takes the block away.
func TestNoBlockNoCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.view.runs("app", "a")
		none := app("app", func(c *config.Target) { c.Restart = nil })
		w.apply(none)
		if got := loops(); got != 0 {
			t.Errorf("%d loops without a block", got)
		}
		w.apply(app("app"))
		if got := loops(); got != 1 {
			t.Errorf("%d loops with a block, want 1", got)
		}
		w.apply(none)
		if got := loops(); got != 0 {
			t.Errorf("%d loops after the block was taken away", got)
		}
		if s := w.r.Status(); len(s.Targets) != 0 {
			t.Errorf("got %+v", s)
		}
		if _, ok := w.r.Target("app"); ok {
			t.Error("a target without a block has a state")
		}
	})
}

// loops returns how many Restarters have a loop that runs.
func loops() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "restart.(*Restarter).run(")
}

// Counters go on over a reload, and begin anew where the labels change.
func TestCountersAndLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.says("app", "bad")
		w.sleep(5 * time.Second)
		w.apply(app("app", func(c *config.Target) { c.Restart.DryRun = true }))
		if s := w.status("app"); s.Counts.Succeeded != 1 || !s.DryRun {
			t.Errorf("got %+v", s)
		}
		w.apply(app("app", func(c *config.Target) { c.Labels = []config.Label{{Name: "a", Value: "b"}} }))
		if s := w.status("app"); s.Counts != (Counts{}) || len(s.Acts) != 1 || s.Labels[0].Value != "b" {
			t.Errorf("got %+v", s)
		}
	})
}

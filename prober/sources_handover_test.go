// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// heir is the instance that id hands over to, now.
func heir(id, from string) gate.Instance {
	inst := runs(id)
	inst.From = from
	return inst
}

// A hand-over changes nothing of what is said, is no restart, and makes startup and
// readiness take their turn at once, whatever their delays.
func TestSourceHandOver(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe.InitialDelay, c.ReadinessProbe.InitialDelay, c.LivenessProbe.InitialDelay = time.Second, time.Second, time.Second
		w.apply(c)
		v.sees(runs("a"))
		w.sleepUntil(5500 * ms)
		w.is("app", "SRL")
		before := len(w.at("app/liveness"))
		v.sees(heir("b", "a"))
		w.is("app", "SRL")
		synctest.Wait()
		w.is("app", "SRL")
		for _, k := range []string{"app/startup", "app/readiness"} {
			if at := w.at(k); at[len(at)-1] != 5500*ms {
				t.Errorf("%s: attempts at %v, want the last at once", k, at)
			}
		}
		if got := len(w.at("app/liveness")); got != before {
			t.Errorf("%d attempts at liveness before its delay", got-before)
		}
		s, _ := w.m.Target("app", Brief)
		if s.Restarts != 0 || s.Instance.ID != "b" {
			t.Errorf("%d restarts, instance %q", s.Restarts, s.Instance.ID)
		}

		again := heir("c", "b")
		again.Restarted = true
		v.sees(again)
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 {
			t.Errorf("%d restarts after another process has taken over, want 1", s.Restarts)
		}
	})
}

// What hands over to a boot is neither started nor ready as soon as the first attempt says
// so, and its liveness is not judged.
func TestSourceHandOverIntoABoot(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		for _, k := range []string{"app/startup", "app/readiness", "app/liveness"} {
			w.says(k, bad)
		}
		v.sees(heir("b", "a"))
		synctest.Wait()
		w.is("app", "srL")
		before := len(w.at("app/liveness"))
		w.sleepUntil(2700 * ms)
		if got := len(w.at("app/liveness")); got != before {
			t.Errorf("%d attempts at liveness while it boots", got-before)
		}
		w.says("app/startup", good)
		w.says("app/readiness", good)
		w.says("app/liveness", good)
		w.sleepUntil(5500 * ms)
		w.is("app", "SRL")
	})
}

// An instance that was seen for the first time long after it began takes back what was said
// against the target before, and is no restart.
func TestSourceSeesASocketAtLast(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe = nil
		c.LivenessProbe.InitialDelay = 2 * time.Second
		w.apply(c)
		w.says("app/liveness", bad)
		w.says("app/readiness", bad)
		boot := runs("since")
		v.sees(boot)
		w.sleepUntil(8500 * ms)
		w.is("app", "Srl")
		seen := boot
		seen.ID, seen.From, seen.LivenessLag = "socket", "since", time.Since(boot.StartedAt)
		v.sees(seen)
		w.is("app", "SrL")
		w.sleepUntil(10 * time.Second)
		w.is("app", "SrL")
		w.says("app/liveness", good)
		w.says("app/readiness", good)
		w.sleepUntil(12 * time.Second)
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 {
			t.Errorf("%d restarts, want 0", s.Restarts)
		}
	})
}

// The source is told of each attempt that has failed, before it is asked to look, and of no
// other; and of a question that a kubelet asks.
func TestSourceIsToldOfFailures(t *testing.T) {
	inView(t, func(w *world, v *view) {
		var told string
		v.mu.Lock()
		v.look = func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			told += v.missed
			v.missed = ""
		}
		v.mu.Unlock()
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		if told != "" {
			t.Errorf("told of %q, and nothing has failed", told)
		}
		w.on("app/readiness", func(context.Context) (action.Outcome, error) { return bad, errors.New("no descriptor") })
		w.says("app/liveness", bad)
		w.sleepUntil(2500 * ms)
		if told != "app " {
			t.Errorf("told of %q, want of the failure of liveness alone", told)
		}
		c := watched("view")
		c.ReadinessProbe.InitialDelay, c.LivenessProbe.InitialDelay = time.Minute, time.Minute
		w.apply(c)
		w.m.Asked("app", gate.Readiness)
		w.m.Asked("app", gate.Liveness)
		w.m.Asked("nobody", gate.Liveness)
		if v.asked != "app0s app-1m0s " {
			t.Errorf("told of questions about %q; want it to have run now, and for its delay", v.asked)
		}
	})
}

// Where the source has lost sight of the target the probes take their turn at once: an
// attempt says whether it has ended.
func TestSourceInDoubt(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		before := len(w.at("app/readiness"))
		v.changed("app")
		synctest.Wait()
		if got := len(w.at("app/readiness")); got != before {
			t.Errorf("%d attempts, and nothing is lost", got-before)
		}
		v.mu.Lock()
		v.lost = true
		v.mu.Unlock()
		v.changed("app")
		synctest.Wait()
		for _, k := range []string{"app/readiness", "app/liveness"} {
			if at := w.at(k); at[len(at)-1] != 1500*ms {
				t.Errorf("%s: attempts at %v, want the last at once", k, at)
			}
		}
	})
}

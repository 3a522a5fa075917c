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

// heir returns the instance id, to which the instance from hands over now.
func heir(id, from string) gate.Instance {
	inst := runs(id)
	inst.From = from
	return inst
}

// A hand-over changes no condition and counts as no restart. Startup and readiness take their
// turns at once, whatever their delays.
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
				t.Errorf("%s: attempts at %v, want the last right after the hand-over", k, at)
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

// An instance that hands over to a boot is neither started nor ready as soon as the first
// attempt says so. The agent does not probe the liveness of the boot.
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
			t.Errorf("%d attempts at liveness during the boot", got-before)
		}
		w.says("app/startup", good)
		w.says("app/readiness", good)
		w.says("app/liveness", good)
		w.sleepUntil(5500 * ms)
		w.is("app", "SRL")
	})
}

// If a source sees an instance for the first time long after its beginning, the earlier
// failures no longer count against the target. The sight is no restart.
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

// The agent tells the source of each failed attempt before it asks the source to look. The
// agent mentions no other attempts. The agent also tells the source when a kubelet asks for a
// target.
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
			t.Errorf("told of %q, but nothing has failed", told)
		}
		w.on("app/readiness", func(context.Context) (action.Outcome, error) { return bad, errors.New("no descriptor") })
		w.says("app/liveness", bad)
		w.sleepUntil(2500 * ms)
		if told != "app " {
			t.Errorf("told of %q, want only the failure of liveness", told)
		}
		c := watched("view")
		c.ReadinessProbe.InitialDelay, c.LivenessProbe.InitialDelay = time.Minute, time.Minute
		w.apply(c)
		w.m.Asked("app", gate.Readiness)
		w.m.Asked("app", gate.Liveness)
		w.m.Asked("nobody", gate.Liveness)
		if v.asked != "app0s app-1m0s " {
			t.Errorf("told of questions about %q; want a target that has begun to run now, and one that has run for its delay", v.asked)
		}
	})
}

// If the source has lost sight of the target, the probes take their turns at once: an attempt
// shows whether the target has ended.
func TestSourceInDoubt(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		before := len(w.at("app/readiness"))
		v.changed("app")
		synctest.Wait()
		if got := len(w.at("app/readiness")); got != before {
			t.Errorf("%d attempts, but the source has not lost the target", got-before)
		}
		v.mu.Lock()
		v.lost = true
		v.mu.Unlock()
		v.changed("app")
		synctest.Wait()
		for _, k := range []string{"app/readiness", "app/liveness"} {
			if at := w.at(k); at[len(at)-1] != 1500*ms {
				t.Errorf("%s: attempts at %v, want the last right after the loss", k, at)
			}
		}
	})
}

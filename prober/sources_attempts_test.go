// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// An attempt that spans the end of an instance says nothing about the next instance, be the
// attempt a failure or the success of the startup.
func TestAttemptOverARestart(t *testing.T) {
	inView(t, func(w *world, v *view) {
		w.takes("app/startup", 800*ms, good)
		v.sees(runs("a"))
		w.sleepUntil(300 * ms)
		ended := v.Instance("app")
		ended.Phase = gate.Terminated
		v.sees(ended)
		v.sees(gate.Instance{ID: "b", Phase: gate.Waiting})
		v.sees(runs("b"))
		w.says("app/startup", bad)
		w.sleepUntil(2700 * ms)
		w.is("app", "srL")
	})
}

// An instance that is created but does not run yet has no results of its own. When the instance
// runs, its results begin with the initial values, and nobody kills it during its boot.
func TestSourceCreatedThenRunning(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		w.says("app/startup", bad)
		v.sees(gate.Instance{ID: "b", Phase: gate.Waiting})
		synctest.Wait()
		w.is("app", "srL")
		v.sees(runs("b"))
		if w.is("app", "srL"); w.results() != "UFS" {
			t.Errorf("results %s, want UFS", w.results())
		}
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 {
			t.Errorf("%d restarts, want 1", s.Restarts)
		}
	})
}

// An attempt that spans a freeze does not count.
func TestAttemptOverAFreeze(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.LivenessProbe.FailureThreshold = 1
		w.apply(c)
		v.sees(runs("a"))
		w.sleepUntil(1900 * ms)
		w.takes("app/liveness", 950*ms, bad)
		w.sleepUntil(2100 * ms)
		frozen := v.Instance("app")
		frozen.Phase = gate.PhaseUnknown
		v.sees(frozen)
		w.sleepUntil(2800 * ms)
		frozen.Phase = gate.Running
		v.sees(frozen)
		w.says("app/liveness", good)
		w.sleepUntil(3500 * ms)
		w.is("app", "SRL")
		if p := w.probe("app", gate.Liveness); p.Failed != 1 {
			t.Errorf("%s attempts, want one failed: the metrics count every attempt", p.counted())
		}
	})
}

// If a target that had ended for good runs again under its old ID, the agent probes the target
// before its result changes.
func TestSourceFinalAndBackUnderItsName(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(gate.Instance{ID: "b", Phase: gate.Terminated, Final: true, StartedAt: w.begin})
		w.sleepUntil(1500 * ms)
		for _, k := range []string{"app/startup", "app/readiness", "app/liveness"} {
			w.says(k, bad)
		}
		v.sees(gate.Instance{ID: "b", Phase: gate.Running, StartedAt: w.begin})
		w.is("app", "srL")
		w.sleepUntil(10 * time.Second)
		w.is("app", "srl")
	})
}

// A broken connection may be the first sign that a process dies. The agent therefore asks the
// source again 100 ms later, before the failure counts. An HTTP status says enough at once.
func TestSecondLook(t *testing.T) {
	for reason, want := range map[action.Reason]string{action.ConnectionReset: "SRL", action.HTTPStatus: "SRl"} {
		inView(t, func(w *world, v *view) {
			c := watched("view")
			c.LivenessProbe.FailureThreshold = 1
			w.apply(c)
			v.sees(runs("a"))
			w.sleepUntil(1500 * ms)
			looks := 0
			v.mu.Lock()
			v.look = func() {
				if looks++; looks == 2 {
					v.sees(runs("b"))
				}
			}
			v.mu.Unlock()
			w.on("app/liveness", func(context.Context) (action.Outcome, error) {
				w.says("app/liveness", good)
				return action.Outcome{Reason: reason}, nil
			})
			w.sleepUntil(2900 * ms)
			w.is("app", want)
		})
	}
}

// A slow look delays only the worker that asked for it, and by a second at most. Two attempts
// may be in flight at a time: the agent asks the other target every second, and no turn is
// late.
func TestSlowLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.m.slots = newSlots(load{attempts: 2, files: HighestInFlight})
		defer w.m.Close()
		v := &view{seen: map[string]gate.Instance{"app": runs("a")}, slow: 30 * time.Second}
		w.m.sources.make = func(c *config.Instance, _ *slog.Logger) instance.Watcher {
			if c.Source == "view" {
				return v
			}
			return nil
		}
		w.says("app/readiness", bad)
		w.says("app/liveness", bad)
		c := watched("view")
		c.StartupProbe, c.LivenessProbe.FailureThreshold = nil, 100
		w.apply(c, app("well", nil, every(time.Second), nil))
		w.sleepUntil(30*time.Second + 500*ms)
		if got := len(w.at("well/readiness")); got != 31 {
			t.Errorf("the other target was asked %d times in 30 s, want 31", got)
		}
		if got := len(w.at("app/liveness")); got < 28 {
			t.Errorf("the target itself was asked %d times in 30 s, want 30", got)
		}
		lateness := w.m.Status(Series).Lateness
		if late := lateness.Sum; late != 0 {
			t.Errorf("turns were late by %v s in all", late)
		}
	})
}

// A turn that is the first to see a new state of its target does not poke its own probe.
func TestNoTurnAsksForItself(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		frozen := v.Instance("app")
		frozen.Phase = gate.PhaseUnknown
		v.sees(frozen)
		w.sleepUntil(3200 * ms)
		before := len(w.at("app/readiness"))
		frozen.Phase = gate.Running
		v.mu.Lock()
		v.seen["app"] = frozen // without a notice
		v.mu.Unlock()
		w.sleepUntil(3600 * ms)
		if got := len(w.at("app/readiness")) - before; got != 1 {
			t.Errorf("%d attempts at the first turn, want 1", got)
		}
	})
}

// A turn may be the first to see a new instance and then wait for a slot. The result of the old
// instance does not stand meanwhile: nobody kills a boot for the failure of the instance
// before.
func TestWaitingTurnSeesANewInstance(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe = nil
		w.apply(c)
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(5 * time.Second)
		w.is("app", "SRl")
		all := claim{target: new(target), files: math.MaxInt32}
		if !w.m.slots.tryAcquire(all) {
			t.Fatal("an attempt is under way")
		}
		v.mu.Lock()
		v.seen["app"] = runs("b") // without a notice
		v.mu.Unlock()
		w.sleepUntil(7 * time.Second)
		w.atStage(waiting)
		w.is("app", "SrL")
		w.says("app/liveness", good)
		w.m.slots.release(all)
		synctest.Wait()
		w.is("app", "SRL")
	})
}

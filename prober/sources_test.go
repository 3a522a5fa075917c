// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Until the source sees the target the gate waits (rule 4.3): no attempt, not ready, live.
// At the first sight the probes take their turn at once, and it is no restart.
func TestSourceFirstSight(t *testing.T) {
	inView(t, func(w *world, v *view) {
		w.sleepUntil(5500 * ms)
		w.is("app", "srL")
		if got := len(w.at("app/startup")); got != 0 || !w.probe("app", gate.Startup).Gated {
			t.Errorf("%d attempts on a target that nobody sees, gated %t", got, w.probe("app", gate.Startup).Gated)
		}
		v.sees(runs("a"))
		synctest.Wait()
		w.is("app", "SRL")
		equal(t, "startup", w.at("app/startup"), 5500*ms)
		equal(t, "readiness", w.at("app/readiness"), 5500*ms)
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 || s.Instance.ID != "a" || !s.Running || s.Source != "view" {
			t.Errorf("%+v", s)
		}
	})
}

// The end of an instance makes every result Failure at once (rule 4.8), even while attempts
// are under way; nobody is killed for it; and the attempts do not bring it back.
func TestSourceEnd(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		for _, k := range []string{"app/readiness", "app/liveness"} {
			w.takes(k, 800*ms, good)
		}
		w.sleepUntil(2100 * ms)
		if w.is("app", "SRL"); w.results() != "SSS" {
			t.Errorf("results %s, want SSS", w.results())
		}
		ended := v.Instance("app")
		ended.Phase = gate.Terminated
		v.details = instance.Details{ExitCode: new(137), OOMKilled: true, Message: "m"}
		v.sees(ended)
		if w.is("app", "srL"); w.results() != "SFF" {
			t.Errorf("at once after the end: results %s, want SFF (a startup that succeeded is on hold, 4.21)", w.results())
		}
		w.sleepUntil(10 * time.Second)
		if w.is("app", "srL"); w.results() != "SFF" || len(w.at("app/liveness")) > 4 {
			t.Errorf("8 s after: results %s, attempts at %v", w.results(), w.at("app/liveness"))
		}
		for _, want := range []string{"instance does not run", "exit_code=137", "oom_killed=true", "phase=terminated", "message=m"} {
			if !strings.Contains(w.logged(), want) {
				t.Errorf("the log has no %q", want)
			}
		}
		v.sees(runs("b"))
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 {
			t.Errorf("%d restarts, want 1", s.Restarts)
		}
		if w.results() != "UFS" {
			t.Errorf("results of the new instance: %s, want UFS", w.results())
		}
		synctest.Wait()
		w.sleepUntil(11 * time.Second)
		w.is("app", "SRL")
	})
}

// A failure that the end of the instance explains does not count: the source is asked
// before, so that with failureThreshold 1 a crash never holds what comes after.
func TestSourceIsAskedBeforeAFailureCounts(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(1500 * ms)
		v.mu.Lock()
		v.look = func() {
			ended := v.Instance("app")
			ended.Phase = gate.Waiting
			v.sees(ended)
		}
		v.mu.Unlock()
		w.says("app/liveness", bad)
		for at := 1600 * ms; at < 8*time.Second; at += 100 * ms {
			w.sleepUntil(at)
			if s, _ := w.m.Target("app", Brief); !s.Live {
				t.Fatalf("%v: not live", at)
			}
		}
		p := w.probe("app", gate.Liveness)
		if p.Run != 2 || p.Last != gate.Success || p.Failed != 1 || p.Held {
			t.Errorf("run %d of %v, %d failed, held %t: the failure was counted by the gate", p.Run, p.Last, p.Failed, p.Held)
		}
	})
}

// What has ended for good is not probed any more (rule 4.8), and says what it said last; if
// it comes back after all, its probes begin as fresh as new ones.
func TestSourceFinalAndBack(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(2500 * ms)
		ended := v.Instance("app")
		ended.Phase, ended.Final = gate.Terminated, true
		v.sees(ended)
		w.sleepUntil(3 * time.Second)
		before := len(w.at("app/readiness"))
		w.sleepUntil(60 * time.Second)
		w.is("app", "srL")
		if p := w.probe("app", gate.Readiness); p.Result != gate.Failure || !p.NextTurn.IsZero() || p.Gated {
			t.Errorf("after the end: %+v", p)
		}
		if got := len(w.at("app/readiness")); got != before || len(w.m.Overdue()) != 0 {
			t.Errorf("%d attempts after the end, overdue %v", got-before, w.m.Overdue())
		}
		w.m.Probe("app")
		w.sleepUntil(61 * time.Second)
		if got := len(w.at("app/readiness")); got != before {
			t.Errorf("%d attempts after a manual trigger", got-before)
		}
		v.sees(runs("b"))
		synctest.Wait()
		w.is("app", "SRL")
		if p := w.probe("app", gate.Liveness); p.Run != 1 {
			t.Errorf("the run of the new liveness probe is %d, want 1: it is a new worker", p.Run)
		}
		w.sleepUntil(63500 * ms)
		w.is("app", "SRl")
	})
}

// A target that is being deleted is not killed, nor is it said to have failed; its
// readiness goes on being probed (rule 4.9).
func TestSourceDeleting(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(1500 * ms)
		deleting := v.Instance("app")
		deleting.Deleting = true
		v.sees(deleting)
		synctest.Wait()
		attempts := len(w.at("app/liveness"))
		w.sleepUntil(10 * time.Second)
		w.is("app", "SRL")
		if got := len(w.at("app/liveness")); got != attempts || w.results() != "SSS" {
			t.Errorf("%d more attempts at liveness, results %s", got-attempts, w.results())
		}
		w.says("app/readiness", bad)
		w.sleepUntil(14 * time.Second)
		w.is("app", "SrL")
	})
}

// A frozen instance is neither probed nor judged, and goes on as it was (rule 4.26).
func TestSourcePaused(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.sleepUntil(2500 * ms)
		w.takes("app/liveness", 900*ms, bad)
		w.sleepUntil(3500 * ms)
		paused := v.Instance("app")
		paused.Phase = gate.PhaseUnknown
		v.sees(paused)
		synctest.Wait()
		w.is("app", "srL")
		attempts := len(w.at("app/readiness"))
		w.sleepUntil(60 * time.Second)
		w.is("app", "srL")
		if got := len(w.at("app/readiness")); got != attempts || w.results() != "SSS" || w.probe("app", gate.Liveness).Run != 3 {
			t.Errorf("%d more attempts, results %s, run %d", got-attempts, w.results(), w.probe("app", gate.Liveness).Run)
		}
		w.says("app/liveness", good)
		paused.Phase = gate.Running
		v.sees(paused)
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 {
			t.Errorf("%d restarts", s.Restarts)
		}
	})
}

// The source is told when a probe begins to wait for a new instance, and when it ends.
func TestSourceIsToldOfHolds(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(10 * time.Second)
		if v.held != "app " {
			t.Errorf("held: %q, want app", v.held)
		}
		w.apply(labelled(watched("view"), "x"))
		v.sees(runs("b"))
		w.sleepUntil(11 * time.Second)
		if v.held != "app !app " {
			t.Errorf("held: %q; after a reload and a new instance: app !app", v.held)
		}
	})
}

// A probe is held until a new instance; while the source sees nothing, for a minute at
// most, so that a target that was restarted unseen is not killed for ever.
func TestHoldIsBoundedWhileTheSourceIsDown(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(5 * time.Second)
		held := len(w.at("app/liveness"))
		w.says("app/liveness", good)
		w.sleepUntil(10 * time.Minute)
		if got := len(w.at("app/liveness")); got != held {
			t.Errorf("%d attempts on hold", got-held)
		}
		w.is("app", "SRl")
		v.mu.Lock()
		v.down = true
		v.mu.Unlock()
		w.sleepUntil(10*time.Minute + 1100*ms)
		w.is("app", "SRL")
	})
}

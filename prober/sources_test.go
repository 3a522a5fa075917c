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

// Until the source sees the target the gate waits (rule 4.3): the agent makes no attempt, and
// the target is not ready but live. At the first sight the probes take their turns at once, and
// the sight counts as no restart.
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

// The end of an instance makes every result Failure at once (rule 4.8), even while attempts are
// under way, and the attempts do not bring the result back. Nobody kills the target because of
// that Failure.
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

// A failure that the end of the instance explains does not count. The agent asks the source
// first, so with failureThreshold 1 a crash never puts the next instance on hold.
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
			t.Errorf("run %d of %v, %d failed, held %t: the gate counted the failure", p.Run, p.Last, p.Failed, p.Held)
		}
	})
}

// The agent does not probe an instance that has ended for good (rule 4.8), and the instance
// keeps its last result. If the instance comes back after all, its probes begin like new
// probes.
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
			t.Errorf("the run of the new liveness probe is %d, want 1 of a new worker", p.Run)
		}
		w.sleepUntil(63500 * ms)
		w.is("app", "SRl")
	})
}

// Nobody kills a target that is being deleted, and its liveness does not fail. The agent goes
// on probing its readiness (rule 4.9).
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

// The agent neither probes nor judges a frozen instance, which later goes on as before (rule
// 4.26).
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

// The agent tells the source when a probe begins to wait for a new instance, and when the wait
// ends.
func TestSourceIsToldOfHolds(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(10 * time.Second)
		if v.held != "app " {
			t.Errorf("told %q, want app", v.held)
		}
		w.apply(labelled(watched("view"), "x"))
		v.sees(runs("b"))
		w.sleepUntil(11 * time.Second)
		if v.held != "app !app " {
			t.Errorf("told %q, want app !app after a reload and a new instance", v.held)
		}
	})
}

// A probe on hold waits for a new instance. While the source sees nothing, the hold lasts a
// minute at most, so a restart that nobody saw does not leave the target on hold for ever.
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

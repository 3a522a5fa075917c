// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// A reload that changes the source keeps the instance and its conditions, even before the new
// source has seen the instance. The next instance that the new source sees is a restart.
func TestReloadOfTheSource(t *testing.T) {
	inView(t, func(w *world, v *view) {
		w.apply(watched(config.SourceStatic))
		w.sleepUntil(2500 * ms)
		w.is("app", "SRL")
		w.apply(watched("view"))
		for at := 2600 * ms; at < 5*time.Second; at += 100 * ms {
			w.sleepUntil(at)
			w.is("app", "SRL")
		}
		v.sees(runs("a"))
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 || s.Instance.ID != "a" {
			t.Errorf("%+v", s)
		}
		v.sees(runs("b"))
		w.is("app", "srL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 {
			t.Errorf("%d restarts, want 1", s.Restarts)
		}
	})
}

// A target that has failed and is paused is live, and a reload to another source leaves it live,
// although that source does not see the pause. The reload counts as no restart.
func TestReloadOfTheSourceOfWhatIsPaused(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(2500 * ms)
		w.is("app", "SRl")
		paused := v.Instance("app")
		paused.Phase = gate.PhaseUnknown
		v.sees(paused)
		w.is("app", "srL")
		w.apply(watched(config.SourceStatic))
		if s, _ := w.m.Target("app", Brief); !s.Live || !s.Running || s.Restarts != 0 {
			t.Errorf("after the reload: %+v, want live without a restart", s)
		}
	})
}

// A declared restart counts on top of the restarts that the source sees, and counts once.
func TestDeclareOnTopOfASource(t *testing.T) {
	inView(t, func(w *world, v *view) {
		w.m.NewInstance("app")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 || s.Instance.ID != "" {
			t.Errorf("declared for a target that no source has seen: %+v", s)
		}
		v.sees(runs("a"))
		w.sleepUntil(time.Second)
		w.m.NewInstance("app")
		w.is("app", "srL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 || s.Instance.ID != "a/1" {
			t.Errorf("declared: %+v", s)
		}
		w.sleepUntil(2 * time.Second)
		w.is("app", "SRL")
		v.sees(runs("b"))
		if s, _ := w.m.Target("app", Brief); s.Restarts != 2 || s.Instance.ID != "b" {
			t.Errorf("seen: %+v", s)
		}
	})
}

// While one attempt does not end, a reload still probes the other targets at once and removes
// the removed target.
func TestReloadBesideAnAttemptThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		stuck := make(chan struct{})
		w.on("stuck/liveness", func(context.Context) (action.Outcome, error) {
			<-stuck
			return action.Outcome{}, errors.New("cut short")
		})
		targets := func(label string) []config.Target {
			return []config.Target{
				labelled(app("stuck", nil, nil, every(time.Second)), label),
				labelled(app("well", nil, every(time.Second), nil), label),
			}
		}
		w.apply(append(targets("a"), app("removed", nil, every(time.Second), nil))...)
		w.sleepUntil(1500 * ms)
		done := make(chan error)
		go func() { done <- w.m.Apply(&config.Config{Targets: targets("b")}) }()
		w.sleepUntil(5 * time.Second)
		if got := len(w.at("well/readiness")); got < 5 || !w.m.Removed("removed") {
			t.Errorf("%d attempts of the other target in 5 s, target removed: %t", got, w.m.Removed("removed"))
		}
		w.is("stuck", "SRL")
		w.says("stuck/liveness", good)
		close(stuck)
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.sleepUntil(7 * time.Second)
		if p := w.probe("stuck", gate.Liveness); p.Successful == 0 {
			t.Errorf("the target whose attempt did not end is not probed again: %s", p.counted())
		}
	})
}

// clearing is a view that forgets an instance when its watch changes.
type clearing struct{ *view }

func (c clearing) Watch(t *config.Target) {
	c.view.Watch(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, t.Name)
}

// A reload that makes the same source watch something else keeps the instance until the source
// has seen the new one.
func TestReloadWithinASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		v := &view{seen: map[string]gate.Instance{}}
		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return clearing{v} }
		w.apply(watched("view"))
		v.sees(runs("a"))
		w.sleepUntil(2500 * ms)
		changed := watched("view")
		changed.Instance.Container = "other"
		w.apply(changed)
		w.is("app", "SRL")
		w.sleepUntil(5 * time.Second)
		w.is("app", "SRL")
		v.sees(runs("a2"))
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 || s.Instance.ID != "a2" {
			t.Errorf("%+v", s)
		}
	})
}

// A reload of a target that has ended under a declared ID begins no new instance.
func TestReloadOfWhatWasDeclared(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.m.NewInstance("app")
		w.sleepUntil(1500 * ms)
		ended := v.Instance("app")
		ended.Phase = gate.Terminated
		v.sees(ended)
		changed := watched("view")
		changed.Instance.MaxHold = time.Second
		w.apply(changed)
		w.sleepUntil(3 * time.Second)
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 || s.Instance.ID != "a/1" || s.Running {
			t.Errorf("%+v, want the ended a/1 after one restart", s)
		}
	})
}

// When the new source of a reload first sees the target's instance as ended or frozen, the
// instance is the same as before the reload.
func TestReloadOfTheSourceOfWhatDoesNotRun(t *testing.T) {
	for what, phase := range map[string]gate.Phase{"ended": gate.Terminated, "frozen": gate.PhaseUnknown} {
		inView(t, func(w *world, v *view) {
			w.apply(watched(config.SourceStatic))
			w.sleepUntil(2500 * ms)
			w.apply(watched("view"))
			i := runs("a")
			i.Phase = phase
			v.sees(i)
			w.is("app", "srL")
			if s, _ := w.m.Target("app", Brief); s.Restarts != 0 || s.Instance.ID != "a" {
				t.Errorf("%s: %+v", what, s)
			}
			v.sees(runs("b"))
			if s, _ := w.m.Target("app", Brief); s.Restarts != 1 {
				t.Errorf("%s: %d restarts, want 1", what, s.Restarts)
			}
		})
	}
}

// A reload to static keeps the start of the instance: the delays do not begin anew.
func TestReloadToStatic(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe, c.LivenessProbe.InitialDelay = nil, time.Hour
		w.apply(c)
		v.sees(gate.Instance{ID: "old", Phase: gate.Running})
		w.sleepUntil(10500 * ms)
		before := len(w.at("app/liveness"))
		c.Instance = config.Instance{Source: config.SourceStatic}
		w.apply(c)
		w.sleepUntil(20500 * ms)
		if got := len(w.at("app/liveness")) - before; got < 10 {
			t.Errorf("%d attempts in 10 s, want 10 at least", got)
		}
	})
}

// A restart that is declared while the former source's instance stands in begins a new
// instance.
func TestDeclareWhileTheFormerStandsIn(t *testing.T) {
	inView(t, func(w *world, v *view) {
		v.sees(runs("a"))
		w.says("app/liveness", bad)
		w.sleepUntil(10 * time.Second)
		w.is("app", "SRl")
		other := &view{seen: map[string]gate.Instance{}}
		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return other }
		w.apply(watched("other"))
		w.is("app", "SRl")
		w.says("app/liveness", good)
		w.m.NewInstance("app")
		synctest.Wait()
		w.is("app", "SRL")
		other.sees(runs("b"))
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Restarts != 1 {
			t.Errorf("%d restarts, want 1", s.Restarts)
		}
	})
}

// meddling is a view that calls then while a reload begins to watch another target.
type meddling struct {
	*view
	then func(name string)
}

func (s meddling) Watch(t *config.Target) {
	s.view.Watch(t)
	if s.then != nil {
		s.then(t.Name)
	}
}

// A reload loses no change that a source sees in the middle of the reload, even if the target's
// first turn is a minute away.
func TestChangeDuringAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		source := &meddling{view: &view{seen: map[string]gate.Instance{}}}
		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return source }
		targets := func(label string) []config.Target {
			one, two := watched("view"), watched("view")
			two.Name = "two"
			for _, p := range []*config.Probe{one.StartupProbe, one.ReadinessProbe, one.LivenessProbe} {
				p.Period = time.Minute
			}
			return []config.Target{labelled(one, label), labelled(two, label)}
		}
		w.apply(targets("a")...)
		source.sees(runs("a"))
		synctest.Wait()
		w.is("app", "SRL")
		source.then = func(name string) {
			if name == "two" {
				ended := source.Instance("app")
				ended.Phase = gate.Terminated
				source.sees(ended)
			}
		}
		if err := w.m.Apply(&config.Config{Targets: targets("b")}); err != nil {
			t.Fatal(err)
		}
		w.is("app", "srL")
	})
}

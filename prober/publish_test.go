// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// dates returns when started, ready and live, and then the results of startup, readiness and
// liveness, last changed.
func (w *world) dates() string {
	w.t.Helper()
	s, _ := w.m.Target("app", Brief)
	all := []time.Time{s.Changed.Started, s.Changed.Ready, s.Changed.Live}
	for _, p := range s.Probes {
		all = append(all, p.Changed)
	}
	var said []string
	for _, at := range all {
		said = append(said, at.Sub(w.begin).String())
	}
	return strings.Join(said, " ")
}

func (w *world) dated(want string) {
	w.t.Helper()
	if got := w.dates(); got != want {
		w.t.Errorf("%v: changed at %s, want %s", time.Since(w.begin), got, want)
	}
}

// Each change of a condition or a result has the date of the change, whether a probe, the end
// of an instance or a new instance causes it.
func TestChangesAreDated(t *testing.T) {
	inView(t, func(w *world, v *view) {
		w.dated("0s 0s 0s 0s 0s 0s") // the beginning of the watch
		w.says("app/readiness", bad)
		w.sleepUntil(1500 * ms)
		v.sees(runs("a"))
		synctest.Wait()
		w.dated("1.5s 0s 0s 1.5s 0s 0s")
		w.sleepUntil(3200 * ms)
		w.says("app/readiness", good)
		w.sleepUntil(8 * time.Second)
		w.is("app", "SRL")
		w.dated("1.5s 3.5s 0s 1.5s 3.5s 0s")
		w.says("app/liveness", bad)
		w.sleepUntil(20 * time.Second)
		w.is("app", "SRl")
		w.dated("1.5s 3.5s 10.5s 1.5s 3.5s 10.5s")
		w.sleepUntil(21 * time.Second)
		ended := v.Instance("app")
		ended.Phase = gate.Terminated
		v.sees(ended)
		w.is("app", "srL")
		w.dated("21s 21s 21s 1.5s 21s 10.5s")
		w.says("app/liveness", good)
		w.sleepUntil(25 * time.Second)
		v.sees(runs("b"))
		w.dated("21s 21s 21s 25s 21s 25s")
		synctest.Wait()
		w.is("app", "SRL")
		w.dated("25s 25s 21s 25s 25s 25s")
	})
}

// A reload keeps the dates of everything that goes on. A new probe has the date of the reload,
// and so has every change.
func TestReloadKeepsDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", bad)
		w.apply(app("app", nil, every(time.Second), nil))
		w.sleepUntil(1500 * ms)
		w.says("app/readiness", good)
		w.sleepUntil(5500 * ms)
		w.dated("0s 2s 0s 2s")
		w.apply(labelled(app("app", nil, every(2*time.Second), every(time.Second)), "other"))
		w.dated("0s 2s 0s 2s 5.5s")
		w.sleepUntil(7500 * ms)
		w.apply(app("app", nil, nil, every(time.Second)))
		w.dated("0s 2s 0s 5.5s")
		w.sleepUntil(8500 * ms)
		w.apply(app("app", nil, every(time.Second), every(time.Second)))
		w.dated("0s 2s 0s 8.5s 5.5s")
	})
}

// A hold that ends by itself says when it ends: at the first turn after its maximum.
func TestHeldUntil(t *testing.T) {
	inView(t, func(w *world, v *view) {
		bounded := runs("a")
		bounded.MaxHold = 10500 * ms
		v.sees(bounded)
		w.sleepUntil(500 * ms)
		w.says("app/liveness", bad)
		held := func() time.Duration {
			if p := w.probe("app", gate.Liveness); !p.HeldUntil.IsZero() {
				return p.HeldUntil.Sub(w.begin)
			}
			return -1
		}
		w.sleepUntil(2500 * ms)
		if got := held(); got != -1 {
			t.Errorf("held until %v before there is a hold", got)
		}
		w.sleepUntil(3500 * ms)
		for at := 3500 * ms; at < 14*time.Second; at += time.Second {
			w.sleepUntil(at)
			if got := held(); got != 14*time.Second {
				t.Errorf("%v: held until %v, want 14s", at, got)
			}
		}
		attempts := len(w.at("app/liveness"))
		w.sleepUntil(14 * time.Second)
		if got := len(w.at("app/liveness")); got != attempts+1 {
			t.Errorf("%d attempts at the end of the hold, want 1", got-attempts)
		}
		unbounded := v.Instance("app")
		unbounded.MaxHold = gate.UntilNewInstance
		v.sees(unbounded)
		w.sleepUntil(15 * time.Second)
		if p := w.probe("app", gate.Liveness); !p.Held || !p.HeldUntil.IsZero() {
			t.Errorf("held %t until %v, want until a new instance", p.Held, p.HeldUntil)
		}
		if p := w.probe("app", gate.Startup); !p.Held || !p.HeldUntil.IsZero() {
			t.Errorf("a startup probe that is done is held %t until %v", p.Held, p.HeldUntil)
		}
	})
}

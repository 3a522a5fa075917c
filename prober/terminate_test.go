// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Terminate returns at once and logs one line. From then on the agent does not probe liveness
// and startup, and they keep their results. The agent goes on with readiness, which may change.
// Stop and Close find their work done.
func TestTerminate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.says("booting/startup", bad)
		w.apply(app("app", nil, every(time.Second), every(time.Second)), app("booting", every(time.Second), nil, nil))
		w.takes("app/liveness", time.Hour, bad)
		w.takes("booting/startup", time.Hour, bad)
		w.sleepUntil(1500 * ms)
		w.m.Terminate()
		if got := w.m.Summary(); !got.Terminating || got.Stopping || time.Since(w.begin) != 1500*ms {
			t.Errorf("%+v at %v, want terminating at once, and not stopping", got, time.Since(w.begin))
		}
		w.m.Terminate()
		if n := strings.Count(w.logged(), "pod terminating"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, w.logged())
		}
		w.m.Probe("app")
		w.says("app/readiness", bad)
		w.sleepUntil(10 * time.Second)
		w.is("app", "SrL")
		w.is("booting", "srL")
		if p := w.probe("app", gate.Liveness); p.counted() != "1/0/0" || !p.NextTurn.IsZero() {
			t.Errorf("liveness: %s, next turn %v; want its one success, no next turn", p.counted(), p.NextTurn)
		}
		if n := len(w.at("booting/startup")); n != 2 {
			t.Errorf("%d startup attempts, want the 2 from before", n)
		}
		w.says("app/readiness", good)
		w.sleepUntil(12 * time.Second)
		w.is("app", "SRL")
		w.m.NewInstance("app")
		w.sleepUntil(14 * time.Second)
		w.is("app", "SRL")
		if n := len(w.at("app/liveness")); n != 2 {
			t.Errorf("%d liveness attempts, want the 2 from before, even with a new instance", n)
		}
		w.m.Close()
		if time.Since(w.begin) != 14*time.Second {
			t.Errorf("Close took %v", time.Since(w.begin)-14*time.Second)
		}
	})
}

// After Terminate, no reload brings liveness and startup back, be the target new, changed or
// equal. Neither does the first configuration.
func TestTerminateSurvivesReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("equal", nil, every(time.Second), every(time.Second)), app("changed", every(time.Second), every(time.Second), every(time.Second)))
		w.sleepUntil(1500 * ms)
		w.m.Terminate()
		for _, name := range []string{"equal/liveness", "changed/liveness", "new/liveness"} {
			w.says(name, bad)
		}
		w.apply(app("equal", nil, every(time.Second), every(time.Second)),
			app("changed", every(2*time.Second), every(2*time.Second), every(2*time.Second)),
			app("new", nil, every(time.Second), every(time.Second)), app("boots", every(time.Second), nil, nil))
		w.sleepUntil(20 * time.Second)
		for name, want := range map[string]string{"equal": "SRL", "changed": "SRL", "new": "SRL", "boots": "srL"} {
			w.is(name, want)
		}
		for name, want := range map[string]int{"equal/liveness": 2, "changed/liveness": 2, "changed/startup": 1, "new/liveness": 0, "boots/startup": 0} {
			if n := len(w.at(name)); n != want {
				t.Errorf("%s: %d attempts, want the %d from before", name, n, want)
			}
		}
		if n := len(w.at("changed/readiness")); n < 10 {
			t.Errorf("%d readiness attempts, want attempts to go on", n)
		}
		fresh := newWorld(t)
		defer fresh.m.Close()
		fresh.m.Terminate()
		fresh.apply(app("app", nil, every(time.Second), every(time.Second)))
		fresh.sleepUntil(5 * time.Second)
		fresh.is("app", "SRL")
		if n := len(fresh.at("app/liveness")); n != 0 {
			t.Errorf("%d liveness attempts of a first configuration", n)
		}
	})
}

// A reload that waits for an attempt does not hold Terminate up, and Terminate holds for the
// reload.
func TestTerminateDuringAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		ends := make(chan struct{})
		w.on("app/readiness", func(context.Context) (action.Outcome, error) {
			<-ends
			return good, nil
		})
		w.apply(app("app", nil, every(time.Second), every(time.Second)))
		w.sleepUntil(1500 * ms)
		applied := make(chan struct{})
		go func() {
			defer close(applied)
			other := every(time.Second)
			other.HTTPGet.Path = "/other" // so the reload cuts the attempt short and waits for it
			cfg := &config.Config{Targets: []config.Target{app("app", nil, other, every(2*time.Second))}}
			if err := w.m.Apply(cfg); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		before := len(w.at("app/liveness"))
		w.m.Terminate()
		if time.Since(w.begin) != 1500*ms {
			t.Errorf("Terminate took until %v", time.Since(w.begin))
		}
		close(ends)
		<-applied
		w.sleepUntil(10 * time.Second)
		w.is("app", "SRL")
		if n := len(w.at("app/liveness")); n != before {
			t.Errorf("%d liveness attempts, want the %d from before", n, before)
		}
		if n := len(w.at("app/readiness")); n < 4 {
			t.Errorf("%d readiness attempts, want attempts to go on", n)
		}
	})
}

// Terminate ends a turn that waits for a slot, so a reload has nothing to wait for.
func TestTerminateEndsAWaitingTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 1, files: HighestInFlight})
		w.takes("busy/readiness", time.Hour, good)
		w.apply(app("busy", nil, every(time.Second), nil))
		w.sleepUntil(500 * ms)
		w.apply(app("busy", nil, every(time.Second), nil), app("app", nil, nil, every(time.Second)))
		w.sleepUntil(2500 * ms)
		if n := len(w.at("app/liveness")); n != 0 {
			t.Fatalf("%d attempts, want none while the slot is taken", n)
		}
		w.m.Terminate()
		synctest.Wait()
		begin := time.Now()
		other := every(time.Second)
		other.HTTPGet.Path = "/other"
		w.apply(app("busy", nil, every(time.Second), nil), app("app", nil, nil, other))
		if took := time.Since(begin); took != 0 || w.m.Waiting() != nil {
			t.Errorf("the reload took %v, and after it %v wait", took, w.m.Waiting())
		}
	})
}

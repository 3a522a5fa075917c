// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// 15 reloads, 2 s apart, that change a label neither keep a dead target alive nor kill a target
// early. The attempts come at the same times as without reloads, even during a reload.
func TestReloadsKeepNobodyAlive(t *testing.T) {
	for _, takes := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			slow := every(10 * time.Second)
			slow.Timeout = 5 * time.Second
			target := func(i int) config.Target {
				return labelled(app("app", nil, every(time.Second), slow), fmt.Sprint(i))
			}
			w.apply(target(0))
			w.sleepUntil(time.Second)
			w.takes("app/liveness", takes, bad)
			for i := range 15 {
				w.sleepUntil(time.Duration(2*i+1)*time.Second + 500*ms)
				w.apply(target(i + 1))
				if i == 14 {
					w.is("app", "SRL")
				}
			}
			w.sleepUntil(30*time.Second + takes - ms)
			w.is("app", "SRL")
			w.sleepUntil(30*time.Second + takes)
			w.is("app", "SRl")
			equal(t, "attempts", w.at("app/liveness"), 0, 10*time.Second, 20*time.Second, 30*time.Second)
			if p := w.probe("app", gate.Readiness); w.at("app/readiness")[30] != 30*time.Second || p.Period != time.Second {
				t.Errorf("readiness attempts at %v, want one a second", w.at("app/readiness"))
			}
		})
	}
}

// stuckIn makes a probe's next attempt last until release is called, whatever cuts the attempt
// short.
func (w *world) stuckIn(name string) (release func()) {
	stuck := make(chan struct{})
	w.on(name, func(ctx context.Context) (action.Outcome, error) {
		<-stuck
		return good, ctx.Err()
	})
	return func() {
		w.says(name, good)
		close(stuck)
	}
}

// An attempt that does not end delays only its own probe. It delays neither the reload that
// cuts the attempt short, nor later reloads, nor the other probes of the target. The log names
// the probe once. The probe is overdue as without a reload, and goes on when the attempt has
// ended.
func TestReloadsPassAnAttemptThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		release := w.stuckIn("app/liveness")
		target := func(path string) config.Target {
			liveness := every(time.Second)
			liveness.HTTPGet.Path = path
			return app("app", nil, every(time.Second), liveness)
		}
		w.apply(target("/0"))
		w.sleepUntil(500 * ms)
		for i := range 5 {
			w.apply(target(fmt.Sprint("/", i+1)))
			if since, longest := time.Since(w.begin), 500*ms+leaveTime; since > longest {
				t.Fatalf("reload %d ended at %v, want %v: the reload waited for an attempt that does not end", i, since, longest)
			}
		}
		w.apply() // removes the target, which the next reload brings back
		if w.m.Waiting() != nil || w.m.Status(Brief).Waiting != 0 {
			t.Errorf("%v wait without a target", w.m.Waiting())
		}
		w.apply(target("/last"))
		if got, want := w.m.Waiting(), []string{"app/liveness"}; !slices.Equal(got, want) || w.m.Status(Brief).Waiting != 1 {
			t.Errorf("%v wait, want %v", got, want)
		}
		w.sleepUntil(10500 * ms)
		if got := len(w.at("app/readiness")); got < 10 {
			t.Errorf("%d attempts at readiness in 10 s", got)
		}
		if got := w.at("app/liveness"); len(got) != 1 || w.m.Overdue() != nil {
			t.Errorf("liveness attempts at %v, overdue %v; want only the stuck attempt, and nothing overdue yet", got, w.m.Overdue())
		}
		w.sleepUntil(34 * time.Second) // three timeouts and 30 s
		if got, want := w.m.Overdue(), []string{"app/liveness"}; !slices.Equal(got, want) {
			t.Errorf("overdue: %v, want %v", got, want)
		}
		release()
		w.sleepUntil(36 * time.Second)
		if p := w.probe("app", gate.Liveness); p.Successful < 2 || p.Failed+p.Unknown != 0 {
			t.Errorf("the attempts after that: %s, want successes alone", p.counted())
		}
		if w.m.Waiting() != nil || w.m.Overdue() != nil {
			t.Errorf("%v wait, %v is overdue", w.m.Waiting(), w.m.Overdue())
		}
		for _, line := range []string{
			`level=WARN msg="attempts that a reload has cut short do not end: only their own probes wait for them" count=1 probes=app/liveness`,
			`level=INFO msg="an attempt that a reload had cut short has ended" target=app probe_type=Liveness`,
		} {
			if n := strings.Count(w.logged(), line); n != 1 {
				t.Errorf("logged %d times: %s\n%s", n, line, w.logged())
			}
		}
	})
}

// An attempt that goes on after a reload counts for the new probe. The next reload cuts the attempt
// short if its configuration would make another attempt.
func TestReloadTakesOverAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		liveness := every(5 * time.Second)
		liveness.Timeout = 4 * time.Second
		w.apply(app("app", nil, nil, liveness))
		w.takes("app/liveness", 3*time.Second, bad)
		w.sleepUntil(6 * time.Second) // in the second attempt
		w.apply(labelled(app("app", nil, nil, liveness), "a"))
		w.apply(labelled(app("app", nil, nil, liveness), "b"))
		if got := w.m.Waiting(); time.Since(w.begin) != 6*time.Second || len(got) != 1 {
			t.Errorf("at %v, %v wait: want no wait for an attempt that goes on", time.Since(w.begin), got)
		}
		w.sleepUntil(9 * time.Second)
		if p := w.probe("app", gate.Liveness); p.counted() != "0/1/0" || p.Run != 1 || p.ConsecutiveFailures != 1 || len(p.Attempts) != 2 {
			t.Errorf("after the attempt: %+v", p)
		}
		w.sleepUntil(11 * time.Second) // in the third attempt
		w.apply(labelled(app("app", nil, nil, liveness), "c"))
		other := every(5 * time.Second)
		other.HTTPGet.Path = "/other"
		w.apply(labelled(app("app", nil, nil, other), "c"))
		w.sleepUntil(11500 * ms)
		if p := w.probe("app", gate.Liveness); p.counted() != "0/0/0" || p.Run != 0 {
			t.Errorf("after a reload that makes other attempts: %+v", p)
		}
		equal(t, "attempts", w.at("app/liveness"), 0, 5*time.Second, 10*time.Second, 11*time.Second)
	})
}

// A turn that is due at once comes at once in spite of a reload, whether somebody has asked for
// the turn or the reload has made it possible. A shorter period counts from now.
func TestReloadKeepsTheGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("gated/startup", bad)
		w.apply(app("app", nil, nil, every(time.Hour)), app("poked", nil, every(time.Hour), nil), app("gated", every(time.Hour), every(time.Hour), nil))
		w.sleepUntil(time.Minute)
		release := w.stuckIn("poked/readiness")
		w.m.Probe("poked")
		synctest.Wait()
		w.m.Probe("poked") // while another turn is under way
		w.apply(app("app", nil, nil, every(10*time.Second)), labelled(app("poked", nil, every(time.Hour), nil), "x"), app("gated", nil, every(time.Hour), nil))
		release()
		w.sleepUntil(71 * time.Second)
		equal(t, "a shorter period", w.at("app/liveness"), 0, 70*time.Second)
		equal(t, "a probe that is no longer gated", w.at("gated/readiness"), time.Minute)
		equal(t, "a poked probe", w.at("poked/readiness"), 0, time.Minute, time.Minute)
	})
}

// After Stop, an attempt from before a reload does not count; Close waits for the attempt.
func TestStopAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		once := every(time.Second)
		once.FailureThreshold, once.Timeout = 1, 10*time.Second
		w.takes("app/liveness", 5*time.Second, bad)
		release := w.stuckIn("app/readiness")
		liveness := *once
		w.apply(app("app", nil, once, &liveness))
		w.sleepUntil(time.Second)
		w.apply(labelled(app("app", nil, once, &liveness), "x"))
		w.m.Stop()
		w.sleepUntil(20 * time.Second)
		if p := w.probe("app", gate.Liveness); p.counted() != "0/0/0" || p.Result != gate.Success {
			t.Errorf("liveness after Stop: %s, %v", p.counted(), p.Result)
		}
		closed := make(chan struct{})
		go func() {
			w.m.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for an attempt")
		default:
		}
		release()
		<-closed
	})
}

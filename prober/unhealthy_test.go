// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// sooner returns a probe with a period of 10 s and an unhealthy period, which fails at once.
func sooner(unhealthy time.Duration) *config.Probe {
	p := every(10 * time.Second)
	p.UnhealthyPeriod, p.FailureThreshold = unhealthy, 1
	return p
}

// A readiness probe with periods of 10 s and 0.5 s finds the first success and each recovery
// within 0.5 s. In between its turns are those of the period of 10 s, where they were.
func TestUnhealthyPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", bad)
		w.apply(app("app", nil, sooner(500*ms), nil))
		w.sleepUntil(1200 * ms)
		if p := w.probe("app", gate.Readiness); p.NextTurn.Sub(w.begin) != 1500*ms || p.Period != 10*time.Second || p.UnhealthyPeriod != 500*ms {
			t.Errorf("periods of %v and %v, next turn at %v; want 10 s, 500 ms and 1.5 s", p.Period, p.UnhealthyPeriod, p.NextTurn.Sub(w.begin))
		}
		w.says("app/readiness", good)
		w.sleepUntil(15 * time.Second)
		if p := w.probe("app", gate.Readiness); p.NextTurn.Sub(w.begin) != 20*time.Second {
			t.Errorf("next turn at %v, want 20 s", p.NextTurn.Sub(w.begin))
		}
		w.says("app/readiness", bad)
		w.sleepUntil(21100 * ms)
		w.is("app", "SrL")
		w.says("app/readiness", good)
		w.sleepUntil(35 * time.Second)
		w.is("app", "SRL")
		equal(t, "attempts", w.at("app/readiness"), 0, 500*ms, 1000*ms, 1500*ms, 10*time.Second,
			20*time.Second, 20500*ms, 21*time.Second, 21500*ms, 30*time.Second)
	})
}

// Thresholds go on counting attempts: failures come 10 s apart until the result is Failure, and
// successes 2 s apart until the result is Success. The three attempts of a startup probe last 4 s.
func TestUnhealthyPeriodCountsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		slow := sooner(2 * time.Second)
		slow.FailureThreshold, slow.SuccessThreshold = 3, 2
		boot := sooner(2 * time.Second)
		boot.FailureThreshold = 3
		w.says("boots/startup", bad)
		w.apply(app("app", nil, slow, nil), app("boots", boot, nil, nil))
		w.sleepUntil(3900 * ms)
		w.is("app", "SRL")
		w.is("boots", "srL")
		w.says("app/readiness", bad)
		w.sleepUntil(4 * time.Second)
		w.is("boots", "srl")
		w.sleepUntil(31 * time.Second)
		w.is("app", "SrL")
		w.says("app/readiness", good)
		w.sleepUntil(41 * time.Second)
		w.is("app", "SRL")
		equal(t, "attempts", w.at("app/readiness"), 0, 2*time.Second, 10*time.Second, 20*time.Second,
			30*time.Second, 32*time.Second, 34*time.Second, 40*time.Second)
	})
}

// Two attempts are never closer than the unhealthy period: after a success at 9.8 s the point of
// the grid at 10 s is left out.
func TestUnhealthyPeriodNearTheGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", bad)
		w.apply(app("app", nil, sooner(700*ms), nil))
		w.sleepUntil(9200 * ms)
		w.says("app/readiness", good)
		w.sleepUntil(25 * time.Second)
		got := w.at("app/readiness")
		equal(t, "the last attempts", got[len(got)-3:], 9100*ms, 9800*ms, 20*time.Second)
	})
}

// A thousand probes whose targets recover together go back to the turns that they had before,
// spread over 10 s.
func TestUnhealthyPeriodKeepsTheSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		var targets []config.Target
		name := func(i int) string { return fmt.Sprintf("t%d", i) }
		for i := range 10000 {
			p := every(time.Hour) // for the spread only
			if i < 1000 {
				p = sooner(300 * ms)
			}
			targets = append(targets, app(name(i), nil, p, nil))
		}
		w.apply(targets...)
		w.sleepUntil(12 * time.Second)
		for i := range 1000 {
			w.says(name(i)+"/readiness", bad)
		}
		w.sleepUntil(31 * time.Second)
		for i := range 1000 {
			w.says(name(i)+"/readiness", good)
		}
		w.sleepUntil(60 * time.Second)
		for i := range 1000 {
			at := w.at(name(i) + "/readiness")
			first, last := at[0], at[len(at)-1]
			if (last-first)%(10*time.Second) != 0 {
				t.Fatalf("%s: first turn at %v, last at %v; want the same place in 10 s", name(i), first, last)
			}
		}
	})
}

// The agent takes no turns in vain: a probe that waits for the start of its target, or for an
// instance, has one turn in 10 s. One that waits for its initial delay finds the end of the delay
// within 0.1 s.
func TestUnhealthyPeriodOfAGatedProbe(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = sooner(500*ms), sooner(100*ms), nil
		c.StartupProbe.FailureThreshold = 1000
		c.ReadinessProbe.InitialDelay = 6250 * ms
		w.apply(c)
		turns := func() uint64 { return w.m.Lateness().Count }
		before := turns()
		w.sleepUntil(time.Minute)
		if n := turns() - before; n > 14 {
			w.t.Errorf("%d turns in a minute without an instance, want 14 at most", n)
		}
		w.says("app/startup", bad)
		v.sees(runs("a"))
		w.sleepUntil(61 * time.Second)
		before = turns()
		w.sleepUntil(64 * time.Second)
		if n := turns() - before; n > 7 {
			w.t.Errorf("%d turns in 3 s of startup, want 6 of startup and 1 of readiness at most", n)
		}
		w.says("app/startup", good)
		w.sleepUntil(70 * time.Second)
		at := w.at("app/readiness")
		if len(at) != 1 || at[0] < 66250*ms || at[0] > 66350*ms {
			w.t.Errorf("readiness attempts at %v, want the first from 66.25 s to 66.35 s", at)
		}
	})
}

// A new instance that a turn of another probe sees first does not wait for the period either.
func TestUnhealthyPeriodOfANewInstance(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe, c.ReadinessProbe = sooner(500*ms), nil
		w.apply(c)
		v.sees(runs("a"))
		w.sleepUntil(3100 * ms)
		w.is("app", "SRL")
		v.mu.Lock()
		v.seen["app"] = runs("b") // without a notice
		v.mu.Unlock()
		w.sleepUntil(4050 * ms)
		w.is("app", "SRL")
		if n := len(w.at("app/startup")); n != 2 {
			w.t.Errorf("%d attempts of startup, want one for each instance", n)
		}
	})
}

// An unhealthy period that a reload adds counts from the last turn. A reload that changes a label
// leaves the turns where they are, and so do those after it.
func TestUnhealthyPeriodOverReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", bad)
		w.apply(app("app", nil, every(10*time.Second), nil))
		w.sleepUntil(3 * time.Second)
		p := every(10 * time.Second)
		p.UnhealthyPeriod = 700 * ms
		w.apply(app("app", nil, p, nil))
		w.sleepUntil(5200 * ms)
		w.apply(labelled(app("app", nil, p, nil), "a"))
		w.says("app/readiness", good)
		w.sleepUntil(6 * time.Second)
		w.apply(labelled(app("app", nil, p, nil), "b"))
		w.sleepUntil(30 * time.Second)
		equal(t, "attempts", w.at("app/readiness"), 0, 3500*ms, 4200*ms, 4900*ms, 5600*ms, 10*time.Second, 20*time.Second, 30*time.Second)
	})
}

// A reload during the attempt that makes the result Failure does not put the recovery off: the
// next attempt comes an unhealthy period after that one.
func TestUnhealthyPeriodOfAnAttemptOverAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.apply(app("app", nil, sooner(500*ms), nil))
		w.sleepUntil(5 * time.Second)
		w.takes("app/readiness", 200*ms, bad)
		w.sleepUntil(10100 * ms)
		w.apply(labelled(app("app", nil, sooner(500*ms), nil), "a"))
		w.says("app/readiness", good)
		w.sleepUntil(15 * time.Second)
		w.is("app", "SRL")
		equal(t, "attempts", w.at("app/readiness"), 0, 10*time.Second, 10500*ms)
	})
}

// A trigger begins the grid anew, also between two points. The news of other probes bring no
// attempt closer than the unhealthy period, although the turn after a trigger counts from the next
// slot.
func TestUnhealthyPeriodAfterATrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/readiness", bad)
		w.apply(app("app", nil, sooner(700*ms), every(10*ms)))
		w.sleepUntil(3210 * ms)
		w.m.Probe("app")
		w.sleepUntil(3900 * ms)
		w.says("app/readiness", good)
		w.sleepUntil(15 * time.Second)
		equal(t, "attempts", w.at("app/readiness"), 0, 700*ms, 1400*ms, 2100*ms, 2800*ms, 3210*ms, 3950*ms, 13250*ms)
	})
}

// A reload during an attempt between two points of the grid leaves the turns where they are.
func TestUnhealthyPeriodOfAReloadDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.takes("app/readiness", 200*ms, bad)
		w.apply(app("app", nil, sooner(500*ms), nil))
		w.sleepUntil(600 * ms)
		w.apply(labelled(app("app", nil, sooner(500*ms), nil), "a"))
		w.sleepUntil(1100 * ms)
		w.apply(labelled(app("app", nil, sooner(500*ms), nil), "b"))
		w.says("app/readiness", good)
		w.sleepUntil(25 * time.Second)
		equal(t, "attempts", w.at("app/readiness"), 0, 500*ms, 1000*ms, 1500*ms, 10*time.Second, 20*time.Second)
	})
}

// A reload that adds, changes or removes the unhealthy period of a thousand failing probes brings
// their turns not together: neither now nor once they have recovered, when each turn has the place in
// 10 s that it had before.
func TestReloadOfUnhealthyPeriodsKeepsTheSpread(t *testing.T) {
	for _, tt := range []struct{ before, after time.Duration }{
		{0, 700 * ms}, {700 * ms, 0}, {700 * ms, 300 * ms}, {300 * ms, 700 * ms}, {700 * ms, 700 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			name := func(i int) string { return fmt.Sprintf("t%d", i) }
			targets := func(unhealthy time.Duration, label string) (all []config.Target) {
				for i := range 10000 {
					p := every(time.Hour) // for the spread only
					if i < 1000 {
						p = sooner(unhealthy)
					}
					all = append(all, labelled(app(name(i), nil, p, nil), label))
				}
				return all
			}
			w.apply(targets(tt.before, "a")...)
			w.sleepUntil(12 * time.Second)
			for i := range 1000 {
				w.says(name(i)+"/readiness", bad)
			}
			w.sleepUntil(31 * time.Second)
			w.apply(targets(tt.after, "b")...)
			w.sleepUntil(51 * time.Second)
			for i := range 1000 {
				w.says(name(i)+"/readiness", good)
			}
			w.sleepUntil(85 * time.Second)
			least := min(tt.after, tt.before)
			if least == 0 {
				least = max(tt.after, tt.before)
			}
			turns := map[time.Duration]int{}
			for i := range 1000 {
				at := w.at(name(i) + "/readiness")
				if first, last := at[0], at[len(at)-1]; (last-first)%(10*time.Second) != 0 {
					t.Fatalf("%v to %v, %s: first turn at %v, last at %v; want the same place in 10 s", tt.before, tt.after, name(i), first, last)
				}
				for j := range at[1:] {
					if gap := at[j+1] - at[j]; gap < least {
						t.Fatalf("%v to %v, %s: two attempts come %v after each other", tt.before, tt.after, name(i), gap)
					}
					if at[j] < 31*time.Second && at[j+1] > 31*time.Second {
						turns[at[j+1].Truncate(50*ms)]++
					}
				}
			}
			for at, n := range turns {
				if n > 300 {
					t.Errorf("%v to %v: %d first turns after the reload at %v", tt.before, tt.after, n, at)
				}
			}
		})
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

func labelled(t config.Target, value string) config.Target {
	t.Labels = []config.Label{{Name: "team", Value: value}}
	return t
}

// A reload that does not touch a target leaves its phase, its counters and its running attempt
// alone.
func TestReloadOfAnEqualTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.takes("app/readiness", 200*ms, good)
		w.apply(app("app", nil, every(time.Second), nil))
		for i := range 50 {
			w.sleepUntil(time.Duration(i+1)*100*ms + 50*ms)
			w.apply(app("app", nil, every(time.Second), nil), app(fmt.Sprintf("other%d", i), nil, every(time.Second), nil))
		}
		equal(t, "attempts", w.at("app/readiness"), 0, time.Second, 2*time.Second, 3*time.Second, 4*time.Second, 5*time.Second)
		if p := w.probe("app", gate.Readiness); p.counted() != "5/0/0" {
			t.Errorf("counted %s, want 5 successes", p.counted())
		}
		if !w.m.Removed("other3") || w.m.Removed("other49") || w.m.Removed("app") || w.m.Removed("nobody") {
			t.Error("Removed does not name exactly the targets that reloads removed")
		}
	})
}

// A hundred reloads that change only a label or a timeout never change whether a target is
// ready or live, be the target good or bad, at any moment.
func TestReloadNeverChangesWhatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		for _, k := range []string{"/startup", "/readiness", "/liveness"} {
			w.says("bad"+k, bad)
		}
		w.says("half/readiness", bad)
		targets := func(i int) []config.Target {
			var all []config.Target
			for _, name := range []string{"good", "bad", "half"} {
				p := every(time.Second)
				p.Timeout += time.Duration(i) * ms
				all = append(all, labelled(app(name, p, every(time.Second), every(time.Second)), fmt.Sprint(i%7)))
			}
			return all
		}
		w.apply(targets(0)...)
		w.sleepUntil(5 * time.Second)
		want := Summary{Loaded: true, Targets: 3, Started: 2, Ready: 1, Live: 2}
		done := make(chan struct{})
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for {
				select {
				case <-done:
					return
				default:
					if got := w.m.Summary(); got != want {
						t.Errorf("%v: %+v, want %+v", time.Since(w.begin), got, want)
						return
					}
					time.Sleep(ms)
				}
			}
		}()
		for i := range 100 {
			w.apply(targets(i + 1)...)
			w.is("good", "SRL")
			w.is("bad", "srl")
			w.is("half", "SrL")
			time.Sleep(37 * ms)
		}
		close(done)
		<-watched
	})
}

// Counters go on if the labels are equal, and begin anew if not. The history stays in either
// case.
func TestReloadCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/liveness", bad)
		w.apply(labelled(app("app", nil, nil, every(time.Second)), "a"))
		w.m.NewInstance("app")
		w.sleepUntil(1500 * ms)
		slower := every(time.Second)
		slower.Timeout = 3 * time.Second
		w.apply(labelled(app("app", nil, nil, slower), "a"))
		w.sleepUntil(2500 * ms)
		if p := w.probe("app", gate.Liveness); p.counted() != "0/4/0" || p.Durations.Failed.Count != 4 || p.LastFailures[0].Count != 4 || p.ConsecutiveFailures != 3 || p.Timeout != 3*time.Second {
			t.Errorf("equal labels, another timeout: %+v", p)
		}
		w.apply(labelled(app("app", nil, nil, slower), "b"))
		w.sleepUntil(3500 * ms)
		if p := w.probe("app", gate.Liveness); p.counted() != "0/1/0" || p.Durations.Failed.Count != 1 || p.LastFailures[0].Count != 5 {
			t.Errorf("another label: %+v", p)
		}
		if s, _ := w.m.Target("app", Brief); s.Restarts != 0 || s.Instance.ID != "static/1" {
			t.Errorf("another label: %+v; want no restarts, and the same instance", s)
		}
	})
}

// The manager knows the last thousand removed targets, however many reloads removed. A target
// that has come back is not among them.
func TestRemovedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		for i := range 30 {
			var targets []config.Target
			for j := range 100 {
				targets = append(targets, app(fmt.Sprintf("t%d-%d", i, j), nil, every(time.Hour), nil))
			}
			w.apply(append(targets, app(fmt.Sprintf("odd%d", i%2), nil, every(time.Hour), nil))...)
		}
		if got := len(w.m.removed); got != 1000 {
			t.Errorf("the manager keeps %d names, want 1000", got)
		}
		for name, want := range map[string]bool{"t29-0": false, "t28-0": true, "t20-0": true, "t18-99": false, "odd0": true, "odd1": false} {
			if w.m.Removed(name) != want {
				t.Errorf("%s removed: %t, want %t", name, !want, want)
			}
		}
	})
}

// A reload cuts short the running attempt of a removed target, or of a probe with another
// action. The reload waits for that attempt and does not count it.
func TestReloadCutsAttemptsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		for _, name := range []string{"changed", "removed"} {
			w.takes(name+"/readiness", time.Hour, good)
		}
		w.apply(app("changed", nil, every(time.Second), nil), app("removed", nil, every(time.Second), nil))
		w.sleepUntil(500 * ms)
		w.says("changed/readiness", good)
		other := every(time.Second)
		other.HTTPGet.Path = "/other"
		w.apply(app("changed", nil, other, nil))
		if p := w.probe("changed", gate.Readiness); p.counted() != "1/0/0" || time.Since(w.begin) != 500*ms {
			t.Errorf("counted %s at %v, want the new attempt at 500 ms", p.counted(), time.Since(w.begin))
		}
		if _, ok := w.m.Target("removed", Brief); ok || !w.m.Removed("removed") {
			t.Error("removed is still there")
		}
	})
}

// New kinds of a ready target begin with Success; those of a target that is not ready begin
// with their initial values. The hold of a startup success ends with another action.
func TestReloadAddsKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		hang := func(name string) { w.takes(name, time.Hour, bad) }
		w.apply(app("app", nil, nil, every(time.Second)))
		hang("app/startup")
		hang("app/readiness")
		w.apply(app("app", every(time.Second), every(time.Second), every(time.Second)))
		w.is("app", "SRL")
		equal(t, "startup of a started target", w.at("app/startup"))

		w.apply() // the manager forgets what was known of the target
		w.apply(app("app", every(time.Second), nil, every(time.Second)))
		w.apply(app("app", every(time.Second), every(time.Second), every(time.Second)))
		w.is("app", "srL")

		w.says("app/startup", good)
		other := every(time.Second)
		other.HTTPGet.Path = "/other"
		w.apply(app("app", other, every(time.Second), every(time.Second)))
		if p := w.probe("app", gate.Startup); !p.Held {
			t.Errorf("after its success: %+v, want held", p)
		}
		w.apply(app("app", every(time.Second), every(time.Second), every(time.Second)))
		if p := w.probe("app", gate.Startup); p.Held || p.Result != gate.Success {
			t.Errorf("with another action: %+v, want Success, not held", p)
		}
		w.is("app", "SrL")
	})
}

// Two actions are the same if they ask the same question, however often and for however long.
func TestSameAction(t *testing.T) {
	base := func() config.Target {
		c := app("app", nil, every(time.Second), nil)
		c.ReadinessProbe.HTTPGet.Expect = &config.Expect{BodyMatches: regexp.MustCompile("a")}
		c.LivenessProbe = &config.Probe{Exec: &config.Exec{Command: []string{"true"}}}
		return c
	}
	for what, change := range map[string]struct {
		do                  func(*config.Target)
		readiness, liveness bool
	}{
		"nothing":   {func(*config.Target) {}, true, true},
		"a timeout": {func(c *config.Target) { c.ReadinessProbe.Timeout++ }, true, true},
		"a label":   {func(c *config.Target) { *c = labelled(*c, "x") }, true, true},
		"the host":  {func(c *config.Target) { c.Host = "::1" }, false, true},
		"the path":  {func(c *config.Target) { c.ReadinessProbe.HTTPGet.Path = "/x" }, false, true},
		"the expectation": {func(c *config.Target) {
			c.ReadinessProbe.HTTPGet.Expect = &config.Expect{BodyMatches: regexp.MustCompile("b")}
		}, false, true},
		"no expectation": {func(c *config.Target) {
			c.ReadinessProbe.HTTPGet.Expect = &config.Expect{BodyMatches: regexp.MustCompile("a")}
		}, true, true},
		"the env": {func(c *config.Target) { c.Env = []config.EnvVar{{Name: "A"}} }, true, false},
		"the container": {func(c *config.Target) {
			c.Instance = config.Instance{Source: config.SourceDocker, Container: "x"}
		}, true, false},
		"the watch": {func(c *config.Target) {
			c.Instance = config.Instance{Source: config.SourceKubernetes, Container: "x"}
		}, true, true},
	} {
		a, b := base(), base()
		change.do(&b)
		if r, l := sameAction(&a, &b, a.ReadinessProbe, b.ReadinessProbe), sameAction(&a, &b, a.LivenessProbe, b.LivenessProbe); r != change.readiness || l != change.liveness {
			t.Errorf("%s differs: same readiness %t, liveness %t; want %t, %t", what, r, l, change.readiness, change.liveness)
		}
	}
}

// A declared restart brings the initial values back and gates readiness and liveness behind the
// startup probe again. The restart counts, and the probes take their turns at once.
func TestNewInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/liveness", bad)
		w.apply(app("app", every(time.Second), every(time.Second), every(time.Second)))
		w.sleepUntil(2500 * ms)
		w.is("app", "SRl")
		w.takes("app/startup", 300*ms, good)
		if !w.m.NewInstance("app") || w.m.NewInstance("nobody") {
			t.Error("NewInstance must find app and nobody else")
		}
		w.is("app", "srL") // at once, not only after a turn
		synctest.Wait()
		w.is("app", "srL")
		s, _ := w.m.Target("app", Brief)
		if s.Restarts != 1 || s.StartupDuration >= 0 || s.Probes[2].ConsecutiveFailures != 0 || s.Probes[2].Result != gate.Success {
			t.Errorf("new instance: %+v", s)
		}
		w.sleepUntil(2900 * ms)
		w.is("app", "SRL")
		s, _ = w.m.Target("app", Brief)
		if s.StartupDuration != 300*ms || s.Instance.ID != "static/1" {
			t.Errorf("started again: %+v, want 300 ms", s)
		}
		w.sleepUntil(10 * time.Second)
		w.m.NewInstance("app")
		if s, _ = w.m.Target("app", Brief); s.Restarts != 2 || s.Instance.ID != "static/2" {
			t.Errorf("the second new instance: %+v", s)
		}
	})
}

// After Stop, the agent does not probe startup and liveness, and they keep their results. The
// agent goes on with readiness, which may change. Close cuts the attempt of readiness short and
// does not count it.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply(app("app", nil, every(time.Second), every(time.Second)), app("booting", every(time.Second), nil, nil))
		w.takes("app/liveness", time.Hour, bad)
		w.takes("booting/startup", time.Hour, bad)
		w.sleepUntil(1500 * ms)
		w.m.Stop()
		if got := w.m.Summary(); !got.Stopping || time.Since(w.begin) != 1500*ms {
			t.Errorf("%+v at %v, want stopping at once", got, time.Since(w.begin))
		}
		if err := w.m.Apply(&config.Config{}); !errors.Is(err, ErrStopping) {
			t.Errorf("Apply: %v, want %v", err, ErrStopping)
		}
		w.m.Probe("app")
		w.says("app/readiness", bad)
		w.sleepUntil(10 * time.Second)
		w.is("app", "SrL")
		if p := w.probe("app", gate.Liveness); p.counted() != "1/0/0" || !p.NextTurn.IsZero() {
			t.Errorf("liveness after Stop: %s, next turn %v; want its one success, no next turn", p.counted(), p.NextTurn)
		}
		w.takes("app/readiness", time.Hour, bad)
		w.sleepUntil(12 * time.Second)
		before := w.probe("app", gate.Readiness).counted()
		w.m.Close()
		w.m.Close()
		if got := w.probe("app", gate.Readiness).counted(); got != before || time.Since(w.begin) != 12*time.Second {
			t.Errorf("counted %s, want %s as before Close", got, before)
		}
	})
}

// Close returns at once if the manager waits for a free slot, and if the manager has no
// configuration.
func TestCloseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.m.slots = newSlots(load{attempts: 1, files: 1})
		w.m.slots.tryAcquire(claim{target: new(target)}) // takes the only slot
		w.apply(app("app", nil, every(time.Second), every(time.Second)))
		w.m.Close()
		New(Options{}).Close()
		if time.Since(w.begin) != 0 {
			t.Errorf("Close took %v", time.Since(w.begin))
		}
	})
}

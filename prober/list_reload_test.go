// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// listed returns a target whose three kinds have lists, each with these members.
func listed(require int, names string) config.Target {
	t := watched("view")
	t.StartupProbe, t.ReadinessProbe, t.LivenessProbe = nil, nil, nil
	for _, k := range gate.Kinds() {
		t = with(t, k, require, names)
	}
	return t
}

// A member is the same over a reload if its name is: the counters, the grid, the run and an attempt
// under way stay with the name, whatever the order in the file.
func TestReloadOfAListByName(t *testing.T) {
	inView(t, func(w *world, v *view) {
		w.apply(listed(1, "a b"))
		v.sees(runs("1"))
		w.sleepUntil(3100 * ms)
		w.says("app/liveness/b", bad)
		w.sleepUntil(6100 * ms)
		w.takes("app/liveness/a", 600*ms, good)
		w.sleepUntil(7300 * ms) // an attempt is under way
		before, _ := w.m.Target("app", Full)
		w.apply(listed(1, "c b a"))
		w.is("app", "SRL")
		w.sleepUntil(7900 * ms)
		after, _ := w.m.Target("app", Full)
		for _, name := range []string{"a", "b"} {
			was, is := before.Named(gate.Liveness, name), after.Named(gate.Liveness, name)
			if is.Result != was.Result || is.Failed != was.Failed || is.ConsecutiveFailures != was.ConsecutiveFailures || !is.Changed.Equal(was.Changed) {
				t.Errorf("%s was %+v, is %+v", name, was, is)
			}
		}
		if was, is := before.Named(gate.Liveness, "a"), after.Named(gate.Liveness, "a"); is.Successful != was.Successful+1 {
			t.Errorf("%d successes after the end of an attempt that was under way, want %d", is.Successful, was.Successful+1)
		}
		if c := after.Named(gate.Liveness, "c"); c.Successful != 1 || c.Failed != 0 {
			t.Errorf("the new member: %+v", c)
		}
		w.says("app/liveness/a", good)
		w.sleepUntil(10 * time.Second)
		for _, name := range []string{"a", "b"} {
			at := w.at("app/liveness/" + name)
			for i := range at[1:] {
				if gap := at[i+1] - at[i]; gap < 900*ms {
					t.Errorf("two attempts of %s come %v after each other", name, gap)
				}
			}
		}
	})
}

// A reload alone changes neither started, ready nor live, whatever it does to the lists: members
// take over what their kind has said. Attempts then decide, and each member needs its own threshold.
func TestReloadOfAListDecidesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after config.Target
		bad           string // the members that fail
		want          string
		then          string // after some attempts
	}{
		"any to all":            {listed(1, "a b"), listed(2, "a b"), "a", "SRL", "Srl"},
		"all to any":            {listed(2, "a b"), listed(1, "a b"), "a", "Srl", "SRL"},
		"a success is removed":  {listed(1, "a b"), listed(1, "a"), "a", "SRL", "Srl"},
		"a failure is removed":  {listed(2, "a b"), listed(1, "b"), "a", "Srl", "SRL"},
		"renamed":               {listed(2, "a b"), listed(2, "c b"), "a", "Srl", "SRL"},
		"added to any":          {listed(1, "a b"), listed(1, "a b c"), "a b", "Srl", "SRL"},
		"added to all":          {listed(1, "a"), listed(2, "a b"), "b", "SRL", "Srl"},
		"single to all":         {watched("view"), listed(2, "a b"), "a", "SRL", "Srl"},
		"list to single":        {listed(1, "a b"), watched("view"), "", "SRL", "SRL"},
		"failed list to single": {listed(2, "a b"), watched("view"), "a", "Srl", "SRL"},
	} {
		t.Run(name, func(t *testing.T) {
			inView(t, func(w *world, v *view) {
				w.apply(tt.before)
				v.sees(runs("1"))
				w.sleepUntil(2 * time.Second)
				for member := range strings.FieldsSeq(tt.bad) {
					w.says("app/readiness/"+member, bad)
					w.says("app/liveness/"+member, bad)
				}
				w.sleepUntil(10050 * ms)
				w.is("app", tt.want)
				for _, k := range gate.Kinds() { // nothing may be found out in the meantime
					for _, member := range []string{"", "/a", "/b", "/c"} {
						w.takes("app/"+k.String()+member, 800*ms, bad)
					}
				}
				w.apply(tt.after)
				w.is("app", tt.want)
				for at := 10100 * ms; at < 10800*ms; at += 100 * ms {
					w.sleepUntil(at)
					w.is("app", tt.want)
				}
				for _, k := range gate.Kinds() {
					for _, member := range []string{"", "/a", "/b", "/c"} {
						if strings.Contains(tt.bad, strings.TrimPrefix(member, "/")) && member != "" && k != gate.Startup {
							w.says("app/"+k.String()+member, bad)
						} else {
							w.says("app/"+k.String()+member, good)
						}
					}
				}
				w.sleepUntil(20 * time.Second)
				w.is("app", tt.then)
			})
		})
	}
}

// Whatever reloads follow each other at whatever moments, none of them changes by itself whether the
// target has started, is ready or is live.
func TestRandomReloadsOfLists(t *testing.T) {
	names := []string{"a", "b", "c"}
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t)
			defer w.m.Close()
			some := func() config.Target {
				c := app("app", nil, nil, nil)
				for _, k := range gate.Kinds() {
					members := append([]string(nil), names...)
					random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
					members = members[:1+random.IntN(3)]
					c = with(c, k, 1+random.IntN(len(members)), strings.Join(members, " "))
				}
				return c
			}
			for range 60 {
				time.Sleep(time.Duration(random.IntN(1500)) * ms)
				synctest.Wait()
				before, known := w.m.Target("app", Brief)
				if err := w.m.Apply(&config.Config{Targets: []config.Target{some()}}); err != nil {
					t.Fatal(err)
				}
				after, _ := w.m.Target("app", Brief)
				if known && (before.Started != after.Started || before.Ready != after.Ready || before.Live != after.Live) {
					t.Fatalf("seed %d: a reload makes %t %t %t of %t %t %t", seed, after.Started, after.Ready, after.Live, before.Started, before.Ready, before.Live)
				}
				synctest.Wait()
				for _, k := range gate.Kinds() {
					for _, name := range names {
						// No attempt ends in the moment of a reload.
						w.takes("app/"+k.String()+"/"+name, ms, map[bool]action.Outcome{true: good, false: bad}[random.IntN(3) > 0])
					}
				}
			}
		})
	}
}

// A startup attempt that is under way when the target starts says nothing any more, also if a reload
// that demands more successes has meanwhile taken the start over, and another has ended the hold:
// nobody is killed for it.
func TestStartIsLatchedOverAReload(t *testing.T) {
	inView(t, func(w *world, v *view) {
		list := func(require, threshold int) config.Target {
			c := with(watched("view"), gate.Startup, require, "a b")
			c.StartupProbe = nil
			for _, p := range c.Several[gate.Startup].Members {
				p.FailureThreshold = threshold
			}
			return c
		}
		w.takes("app/startup/a", 100*ms, good)
		w.takes("app/startup/b", 900*ms, bad)
		w.apply(list(1, 1))
		v.sees(runs("1"))
		w.sleepUntil(500 * ms)
		w.is("app", "SRL")
		for _, c := range []config.Target{list(2, 2), list(2, 1)} {
			w.apply(c)
			w.is("app", "SRL")
		}
		w.sleepUntil(time.Minute)
		w.is("app", "SRL")
		if s, _ := w.m.Target("app", Brief); s.Named(gate.Startup, "b").Failed != 1 {
			t.Error("the attempt that was under way is not in the counters")
		}
	})
}

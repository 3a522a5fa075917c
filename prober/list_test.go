// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// with gives a target a list of probes of a kind in place of its only one: one with each of the
// names, with a period of a second and a failureThreshold of 2.
func with(t config.Target, k gate.Kind, require int, names string) config.Target {
	var several [gate.NumKinds]config.Probes
	if t.Several != nil {
		several = *t.Several
	}
	list := config.Probes{Require: require}
	for name := range strings.FieldsSeq(names) {
		p := every(time.Second)
		p.Name, p.FailureThreshold = name, 2
		list.Members = append(list.Members, p)
	}
	several[k] = list
	t.Several = &several
	return t
}

// results returns the results of the probes of a kind, held ones with an exclamation mark, and what
// they say together, as in "a:Failure! b:Success Success".
func (w *world) list(k gate.Kind) string {
	w.t.Helper()
	s, _ := w.m.Target("app", Brief)
	var words []string
	for _, p := range s.Probes {
		if p.Kind == k {
			word := p.Name + ":" + p.Result.String()
			if p.Held {
				word += "!"
			}
			words = append(words, word)
		}
	}
	for _, c := range s.Combined {
		if c.Kind == k {
			words = append(words, c.Result.String())
		}
	}
	return strings.Join(words, " ")
}

func (w *world) lists(k gate.Kind, want string) {
	w.t.Helper()
	if got := w.list(k); got != want {
		w.t.Errorf("%v: %v is %q, want %q", time.Since(w.begin), k, got, want)
	}
}

// Each member has its own worker, with its own period. The startup probes gate all others, until as
// many as are required have succeeded; the others of them then make no attempts any more.
func TestListOfStartupProbes(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := with(with(watched("view"), gate.Startup, 2, "a b c"), gate.Liveness, 1, "d e")
		c.StartupProbe, c.LivenessProbe = nil, nil
		c.Several[gate.Startup].Members[1].Period = 2 * time.Second
		for _, name := range []string{"a", "b", "c"} {
			w.says("app/startup/"+name, bad)
		}
		w.apply(c)
		v.sees(runs("1"))
		w.says("app/startup/a", good)
		w.sleepUntil(1500 * ms)
		w.is("app", "srL")
		w.lists(gate.Startup, "a:Success! b:UNKNOWN c:Failure UNKNOWN")
		if n := len(w.at("app/liveness/d")) + len(w.at("app/readiness")); n > 0 {
			t.Errorf("%d attempts before the target has started", n)
		}
		w.says("app/startup/b", good)
		w.sleepUntil(2500 * ms)
		w.is("app", "SRL")
		w.lists(gate.Startup, "a:Success! b:Success! c:Failure Success")
		was := len(w.at("app/startup/c"))
		w.says("app/startup/c", bad)
		w.sleepUntil(time.Minute)
		w.is("app", "SRL") // latched
		if n := len(w.at("app/startup/c")); n != was {
			t.Errorf("%d startup attempts after the start", n-was)
		}
		s, _ := w.m.Target("app", Brief)
		if p := s.Named(gate.Startup, "c"); !p.Gated || p.Held {
			t.Errorf("the member that was not needed: %+v", p)
		}
		v.sees(runs("2"))
		w.is("app", "srL")
	})
}

// So many startup probes fail that the required number cannot be met: the target is not live, and
// the failed members are held. A new instance begins anew.
func TestListOfStartupProbesFails(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := with(watched("view"), gate.Startup, 2, "a b c")
		c.StartupProbe = nil
		w.says("app/startup/a", bad)
		w.says("app/startup/b", bad)
		w.takes("app/startup/c", 500*ms, action.Outcome{})
		w.apply(c)
		v.sees(runs("1"))
		w.sleepUntil(5 * time.Second)
		w.is("app", "srl")
		if got := w.list(gate.Startup); !strings.Contains(got, "a:Failure!") || !strings.HasSuffix(got, " Failure") {
			t.Errorf("got %s", got)
		}
		w.says("app/startup/c", good)
		v.sees(runs("2"))
		w.is("app", "srL")
		w.sleepUntil(5100 * ms)
		w.lists(gate.Startup, "a:UNKNOWN b:UNKNOWN c:Success! UNKNOWN")
	})
}

// With any, a member that has failed goes on, and counts again when it recovers. Once all have
// failed the target is not live, and all are held until a new instance.
func TestAnyLivenessProbe(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := with(watched("view"), gate.Liveness, 1, "a b")
		c.LivenessProbe, c.StartupProbe = nil, nil
		w.apply(c)
		v.sees(runs("1"))
		w.says("app/liveness/a", bad)
		w.sleepUntil(10500 * ms)
		w.lists(gate.Liveness, "a:Failure b:Success Success")
		if w.is("app", "SRL"); len(w.at("app/liveness/a")) < 10 || v.held != "" {
			t.Errorf("a failed member makes no attempts: %v, held %q", w.at("app/liveness/a"), v.held)
		}
		w.says("app/liveness/a", good)
		w.sleepUntil(11500 * ms)
		w.lists(gate.Liveness, "a:Success b:Success Success")
		w.says("app/liveness/b", bad)
		w.sleepUntil(20500 * ms)
		w.is("app", "SRL")
		w.says("app/liveness/a", bad)
		w.sleepUntil(23500 * ms)
		w.is("app", "SRl")
		w.lists(gate.Liveness, "a:Failure! b:Failure! Failure")
		if v.held != "app " {
			t.Errorf("the source knows of holds: %q", v.held)
		}
		was := len(w.at("app/liveness/a")) + len(w.at("app/liveness/b"))
		w.says("app/liveness/a", good)
		w.sleepUntil(time.Minute)
		if n := len(w.at("app/liveness/a")) + len(w.at("app/liveness/b")); n != was {
			t.Errorf("%d attempts on hold", n-was)
		}
		w.says("app/liveness/b", good)
		v.sees(runs("2"))
		w.sleepUntil(61 * time.Second)
		w.is("app", "SRL")
		w.lists(gate.Liveness, "a:Success b:Success Success")
	})
}

// A static target has no new instance: no failure of a list holds anything, and enough successes
// make the target live again.
func TestStaticList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.says("app/liveness/a", bad)
		w.says("app/liveness/b", bad)
		w.apply(with(app("app", nil, nil, nil), gate.Liveness, 1, "a b"))
		w.sleepUntil(10500 * ms)
		w.is("app", "SRl")
		w.lists(gate.Liveness, "a:Failure b:Failure Failure")
		w.says("app/liveness/b", good)
		w.sleepUntil(11500 * ms)
		w.is("app", "SRL")
	})
}

// A readiness list is ready as long as the required number succeed.
func TestListOfReadinessProbes(t *testing.T) {
	for require, want := range map[int]string{1: "SRL", 2: "SRL", 3: "SrL"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.m.Close()
			w.says("app/readiness/b", bad)
			w.apply(with(app("app", nil, nil, nil), gate.Readiness, require, "a b c"))
			w.sleepUntil(3500 * ms)
			w.is("app", want)
			w.says("app/readiness/b", good)
			w.sleepUntil(5 * time.Second)
			w.is("app", "SRL")
		})
	}
}

// An attempt that was under way when the list failed counts: a success withdraws the failure, and
// the other members go on.
func TestSuccessOnHold(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := with(watched("view"), gate.Liveness, 1, "a b")
		c.LivenessProbe, c.StartupProbe = nil, nil
		c.Several[gate.Liveness].Members[0].Timeout = time.Minute
		w.says("app/liveness/a", bad)
		w.apply(c)
		v.sees(runs("1"))
		w.sleepUntil(5500 * ms)
		w.takes("app/liveness/a", 10*time.Second, good)
		w.sleepUntil(7 * time.Second)
		w.says("app/liveness/b", bad)
		w.sleepUntil(10 * time.Second)
		w.is("app", "SRl")
		w.lists(gate.Liveness, "a:Failure! b:Failure! Failure")
		w.sleepUntil(17 * time.Second)
		w.is("app", "SRL")
		w.lists(gate.Liveness, "a:Success b:Failure Success")
		was := len(w.at("app/liveness/b"))
		w.sleepUntil(20 * time.Second)
		if len(w.at("app/liveness/b")) == was {
			t.Error("the other member stays held")
		}
	})
}

// The names of members are unique within their kind only. A probe that waits for the end of an
// attempt from before a reload is named in full.
func TestNameOfAMember(t *testing.T) {
	for want, name := range map[string]probeName{
		"app/liveness": {"app", gate.Liveness, ""}, "app/liveness/grpc": {"app", gate.Liveness, "grpc"},
	} {
		if got := name.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Members count for the limit of open files and for the spread of the first turns.
func TestMembersNeedFiles(t *testing.T) {
	single, list := app("app", nil, nil, every(time.Second)), with(app("app", nil, nil, nil), gate.Liveness, 1, "a b c")
	need := func(t config.Target) int {
		return OpenFilesFor(&config.Config{Targets: []config.Target{t}}, 0) - keptFiles
	}
	if got, want := need(list), 3*need(single); got != want {
		t.Errorf("three members need %d files, want %d", got, want)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "testing"

// pair returns a target with a list of two probes of a kind.
func pair(k Kind, require int, p Params) Target {
	p.Configured = true
	return New([NumKinds]Params{}).WithList(k, require, []Params{p, p})
}

// same says that each member of a list is the one of the same number before.
func same(_ Kind, i int) Origin { return Origin{Found: true, Number: i} }

// attempts gives the members of a list an attempt each, with these outcomes: S or F.
func attempts(t *testing.T, target Target, k Kind, inst Instance, outcomes string) Target {
	t.Helper()
	for i, c := range outcomes {
		var v Verdict
		if target, v = target.Next(k, i, inst, k != Startup, epoch); v == Attempt {
			target = target.Fold(k, i, map[rune]Result{'S': Success, 'F': Failure}[c])
		}
	}
	return target
}

// A list says Success, Failure or neither.
func TestCombine(t *testing.T) {
	for _, tt := range []struct {
		probes, require, succeeding, failing int
		want                                 Result
	}{
		{1, 1, 1, 0, Success},
		{1, 1, 0, 1, Failure},
		{1, 1, 0, 0, Unknown},
		{2, 2, 1, 0, Unknown},
		{2, 2, 1, 1, Failure},
		{2, 2, 2, 0, Success},
		{2, 1, 0, 1, Unknown},
		{2, 1, 1, 1, Success},
		{2, 1, 0, 2, Failure},
		{5, 3, 2, 2, Unknown},
		{5, 3, 3, 2, Success},
		{5, 3, 2, 3, Failure},
	} {
		if got := Combine(tt.probes, tt.require, tt.succeeding, tt.failing); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// A turn of a list changes no Target but the one that is returned.
func TestAListIsAValue(t *testing.T) {
	before := attempts(t, pair(Liveness, 1, Params{FailureThreshold: 1}), Liveness, alive("a"), "SF")
	was := [2]Probe{before.Probe(Liveness, 0), before.Probe(Liveness, 1)}
	attempts(t, before, Liveness, alive("b"), "FF")
	before.Rename("a", "c")
	before.Remove(Liveness, 1)
	before.Reconfigure(pair(Liveness, 2, Params{}), same, alive("a"))
	if is := [2]Probe{before.Probe(Liveness, 0), before.Probe(Liveness, 1)}; is != was || !before.Live(alive("a")) {
		t.Errorf("was %+v, is %+v", was, is)
	}
	if renamed := before.Rename("a", "c"); renamed.Probe(Liveness, 1).InstanceID != "c" {
		t.Errorf("not renamed: %+v", renamed.Probe(Liveness, 1))
	}
}

// A member that takes over what its list has said needs its whole threshold for another result.
func TestTakeOverBeginsARun(t *testing.T) {
	p := Params{SuccessThreshold: 3, FailureThreshold: 1}
	a := alive("a")
	target := pair(Readiness, 2, p)
	for range 5 {
		target = attempts(t, target, Readiness, a, "SF")
	}
	target = target.Reconfigure(pair(Readiness, 1, Params{SuccessThreshold: 3, FailureThreshold: 1}), same, a)
	for i, ready := range []bool{false, false, true} {
		if target = attempts(t, target, Readiness, a, "SF"); target.Ready(a) != ready {
			t.Errorf("ready is %t after %d successes", !ready, i+1)
		}
	}
}

// What a member takes over of an instance that has handed over is inherited: its first attempt
// confirms the result.
func TestTakeOverAtAHandOver(t *testing.T) {
	target := attempts(t, pair(Startup, 1, Params{FailureThreshold: 3}), Startup, alive("a"), "SF")
	b := alive("b")
	b.From = "a"
	target = target.Reconfigure(pair(Startup, 2, Params{FailureThreshold: 3}), same, b)
	if !target.Started(b) {
		t.Fatal("the reload has changed started")
	}
	for i := range 2 {
		var v Verdict
		if target, v = target.Next(Startup, i, b, target.Started(b), epoch); v != Attempt || !target.Started(b) {
			t.Errorf("member %d: %v, started %t, want an attempt that confirms", i, v, target.Started(b))
		}
	}
	if target = target.Fold(Startup, 1, Failure); target.Started(b) {
		t.Error("started although a member does not confirm")
	}
}

// A startup attempt that was under way when the target had started, by another member, and when a
// reload then demanded both, does not undo the start.
func TestStartedIsLatchedOverAReload(t *testing.T) {
	a := alive("a")
	target := pair(Startup, 1, Params{FailureThreshold: 1})
	for i := range 2 {
		target, _ = target.Next(Startup, i, a, false, epoch)
	}
	target = target.Fold(Startup, 0, Success).Reconfigure(pair(Startup, 2, Params{FailureThreshold: 1}), same, a)
	if target = target.Fold(Startup, 1, Failure); !target.Started(a) || !target.Live(a) {
		t.Errorf("started %t, live %t", target.Started(a), target.Live(a))
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"
	"time"
)

// handover returns a target with all three probes, started and ready on instance a, and the
// instance b, to which a has handed over a second ago.
func handover(t *testing.T) (target Target, b Instance) {
	t.Helper()
	params := Params{Configured: true, InitialDelay: time.Minute, SuccessThreshold: 1, FailureThreshold: 3}
	target = New([NumKinds]Params{params, params, params})
	a := alive("a")
	for _, k := range Kinds() {
		target, _ = target.Next(k, 0, a, target.Started(a), epoch)
		target = target.Fold(k, 0, Success)
	}
	if !target.Started(a) || !target.Ready(a) || !target.Live(a) {
		t.Fatalf("not ready on its first instance: %+v", target)
	}
	return target, Instance{ID: "b", Phase: Running, StartedAt: epoch.Add(-time.Second), From: "a"}
}

// turn gives a probe a turn and, if the verdict is an attempt, the outcome r.
func turn(target Target, k Kind, inst Instance, r Result) (Target, Verdict) {
	target, v := target.Next(k, 0, inst, target.Started(inst), epoch)
	if v == Attempt {
		target = target.Fold(k, 0, r)
	}
	return target, v
}

// The Success of startup and readiness stands until their first attempts, and these attempts
// wait for no delay. Liveness waits for its own delay.
func TestHandOver(t *testing.T) {
	target, b := handover(t)
	if !target.Started(b) || !target.Ready(b) || !target.Live(b) {
		t.Fatalf("before any turn: started %t, ready %t, live %t", target.Started(b), target.Ready(b), target.Live(b))
	}
	for _, k := range []Kind{Startup, Readiness} {
		var v Verdict
		if target, v = turn(target, k, b, Success); v != Attempt {
			t.Errorf("%v: %v, want an attempt at once", k, v)
		}
		if target, v = turn(target, k, b, Success); v != Wait {
			t.Errorf("%v: a second turn is %v, want the usual wait for the delay or the hold", k, v)
		}
	}
	if _, v := turn(target, Liveness, b, Failure); v != Wait {
		t.Errorf("liveness: %v before the delay", v)
	}
	if !target.Started(b) || !target.Ready(b) || target.Result(Readiness, 0, b) != Success {
		t.Errorf("after a success of each probe: %+v", target)
	}
}

// A first startup attempt that fails shows that the target boots. The target has then not
// started, is not ready whatever its readiness probe said, and the failures before do not count
// against it.
func TestHandOverIntoABoot(t *testing.T) {
	for _, metFirst := range []bool{false, true} {
		target, b := handover(t)
		if metFirst {
			target, _ = target.Next(Readiness, 0, b, target.Started(b), epoch)
		}
		target, _ = turn(target, Startup, b, Failure)
		if target.Started(b) || target.Ready(b) || !target.Live(b) {
			t.Errorf("after the failure: started %t, ready %t, live %t", target.Started(b), target.Ready(b), target.Live(b))
		}
		if got := target.Probe(Startup, 0); got.Result != Unknown || got.Run != 1 || got.Inherited {
			t.Errorf("startup: %+v, want one failure of three", got)
		}
		b.StartedAt = epoch.Add(-time.Hour) // the delay of liveness is over
		target, _ = turn(target, Startup, b, Success)
		if !target.Started(b) || target.Ready(b) {
			t.Errorf("after the boot: started %t, ready %t, want ready by an attempt only", target.Started(b), target.Ready(b))
		}
	}
}

// One failed readiness attempt is enough: a new instance begins as not ready.
func TestHandOverThatIsNotReady(t *testing.T) {
	target, b := handover(t)
	if target, _ = turn(target, Readiness, b, Failure); target.Ready(b) || !target.Started(b) {
		t.Errorf("ready %t, started %t after one failure", target.Ready(b), target.Started(b))
	}
}

// An instance hands over neither a Failure nor a run of failures. An instance that follows an
// unknown instance inherits nothing.
func TestHandOverOfFailures(t *testing.T) {
	target, b := handover(t)
	a := alive("a")
	for range 2 {
		target, _ = turn(target, Liveness, a, Failure)
	}
	target, _ = target.Next(Liveness, 0, b, true, epoch)
	if got := target.Probe(Liveness, 0); got.Run != 0 || got.Result != Success {
		t.Errorf("liveness after two failures of a: %+v", got)
	}
	target, b = handover(t)
	for range 3 {
		target, _ = turn(target, Liveness, a, Failure)
	}
	if target.Live(a) || !target.Live(b) {
		t.Errorf("live %t before, %t after, want the failure withdrawn", target.Live(a), target.Live(b))
	}
	b.From = "another"
	if target.Started(b) || target.Ready(b) || !target.Live(b) {
		t.Error("an instance that follows an unknown instance inherits")
	}
}

// LivenessLag defers only the delay of a liveness probe.
func TestLivenessLag(t *testing.T) {
	inst := alive("a")
	inst.LivenessLag = time.Hour
	for _, k := range Kinds() {
		target := one(k, Params{InitialDelay: time.Minute})
		want := Attempt
		if k == Liveness {
			want = Wait
		}
		if _, v := target.Next(k, 0, inst, k != Startup, epoch.Add(time.Minute-1)); v != want {
			t.Errorf("%v: %v, want %v", k, v, want)
		}
		if _, v := target.Next(k, 0, inst, k != Startup, epoch.Add(time.Minute)); v != Attempt {
			t.Errorf("%v: %v after the delay", k, v)
		}
	}
}

// Each member of a list hands over its own Success. The instance stays started and ready as long as
// the successes that are left are enough; if not, it boots, and the readiness before ends.
func TestListHandOver(t *testing.T) {
	for require, stays := range map[int]bool{1: true, 2: false} {
		p := Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 3}
		target := New([NumKinds]Params{Readiness: p}).WithList(Startup, require, []Params{p, p})
		a, b := alive("a"), alive("b")
		b.From = "a"
		for i := range 2 {
			target, _ = target.Next(Startup, i, a, false, epoch)
			target = target.Fold(Startup, i, Success)
		}
		target, _ = turn(target, Readiness, a, Success)
		if !target.Started(b) || !target.Ready(b) {
			t.Fatalf("require %d: started %t, ready %t at the hand-over", require, target.Started(b), target.Ready(b))
		}
		for i := range 2 {
			var v Verdict
			if target, v = target.Next(Startup, i, b, target.Started(b), epoch); v != Attempt {
				t.Errorf("require %d: %v, want an attempt that confirms", require, v)
			}
		}
		target = target.Fold(Startup, 0, Failure)
		if target.Started(b) != stays || target.Ready(b) != stays || !target.Live(b) {
			t.Errorf("require %d, one does not confirm: started %t, ready %t", require, target.Started(b), target.Ready(b))
		}
		target = target.Fold(Startup, 1, Failure)
		if target.Started(b) || target.Ready(b) || !target.Live(b) {
			t.Errorf("require %d, none confirms: started %t, ready %t", require, target.Started(b), target.Ready(b))
		}
		for i := range 2 {
			target = target.Fold(Startup, i, Success)
		}
		if !target.Started(b) || target.Ready(b) {
			t.Errorf("require %d, after the boot: started %t, ready %t, want ready by an attempt only", require, target.Started(b), target.Ready(b))
		}
	}
}

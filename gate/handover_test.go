// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"
	"time"
)

// handover is a target with all three probes, started and ready on instance a, and the
// instance b that a has handed over to a second ago.
func handover(t *testing.T) (target Target, b Instance) {
	t.Helper()
	params := Params{Configured: true, InitialDelay: time.Minute, SuccessThreshold: 1, FailureThreshold: 3}
	target = New([NumKinds]Params{params, params, params})
	a := alive("a")
	for _, k := range Kinds() {
		target, _ = target.Next(k, a, target.Started(a), epoch)
		target = target.Fold(k, Success)
	}
	if !target.Started(a) || !target.Ready(a) || !target.Live(a) {
		t.Fatalf("not ready on its first instance: %+v", target)
	}
	return target, Instance{ID: "b", Phase: Running, StartedAt: epoch.Add(-time.Second), From: "a"}
}

// turn gives a probe a turn and, if that is an attempt, the outcome r.
func turn(target Target, k Kind, inst Instance, r Result) (Target, Verdict) {
	target, v := target.Next(k, inst, target.Started(inst), epoch)
	if v == Attempt {
		target = target.Fold(k, r)
	}
	return target, v
}

// The Success of startup and readiness stands before the first attempt of each, and the
// attempts wait for no delay. Liveness waits for its own.
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
		t.Errorf("liveness: %v before its delay", v)
	}
	if !target.Started(b) || !target.Ready(b) || target.Result(Readiness, b) != Success {
		t.Errorf("after a success of each: %+v", target)
	}
}

// A first startup attempt that fails shows a boot: the target has not started, is not
// ready whatever its readiness probe said, and is not judged by the failures before.
func TestHandOverIntoABoot(t *testing.T) {
	for _, metFirst := range []bool{false, true} {
		target, b := handover(t)
		if metFirst {
			target, _ = target.Next(Readiness, b, target.Started(b), epoch)
		}
		target, _ = turn(target, Startup, b, Failure)
		if target.Started(b) || target.Ready(b) || !target.Live(b) {
			t.Errorf("after the failure: started %t, ready %t, live %t", target.Started(b), target.Ready(b), target.Live(b))
		}
		if got := target.Probe(Startup); got.Result != Unknown || got.Run != 1 || got.Inherited {
			t.Errorf("startup: %+v, want one failure of three", got)
		}
		b.StartedAt = epoch.Add(-time.Hour) // its delay is over
		target, _ = turn(target, Startup, b, Success)
		if !target.Started(b) || target.Ready(b) {
			t.Errorf("after the boot: started %t, ready %t, want ready by an attempt only", target.Started(b), target.Ready(b))
		}
	}
}

// A first readiness attempt that fails is enough: a new instance begins as not ready.
func TestHandOverThatIsNotReady(t *testing.T) {
	target, b := handover(t)
	if target, _ = turn(target, Readiness, b, Failure); target.Ready(b) || !target.Started(b) {
		t.Errorf("ready %t, started %t after one failure", target.Ready(b), target.Started(b))
	}
}

// Neither a Failure nor a run of failures is handed over, and an instance that follows
// any other than the one that is known inherits nothing.
func TestHandOverOfFailures(t *testing.T) {
	target, b := handover(t)
	a := alive("a")
	for range 2 {
		target, _ = turn(target, Liveness, a, Failure)
	}
	target, _ = target.Next(Liveness, b, true, epoch)
	if got := target.Probe(Liveness); got.Run != 0 || got.Result != Success {
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
		t.Error("an instance that followed another one inherits")
	}
}

// The delay of a liveness probe alone begins LivenessLag later.
func TestLivenessLag(t *testing.T) {
	inst := alive("a")
	inst.LivenessLag = time.Hour
	for _, k := range Kinds() {
		target := one(k, Params{InitialDelay: time.Minute})
		want := Attempt
		if k == Liveness {
			want = Wait
		}
		if _, v := target.Next(k, inst, k != Startup, epoch.Add(time.Minute-1)); v != want {
			t.Errorf("%v: %v, want %v", k, v, want)
		}
		if _, v := target.Next(k, inst, k != Startup, epoch.Add(time.Minute)); v != Attempt {
			t.Errorf("%v: %v once the delay is over", k, v)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"
	"time"
)

// violation returns which promise a turn of a probe has broken, or "".
func violation(k Kind, before Target, inst Instance, started bool, v Verdict, decided Target) string {
	was, is := before.Probe(k, 0), decided.Probe(k, 0)
	switch {
	case decided.Ready(inst) && !decided.Started(inst):
		return "ready without started"
	case decided.Started(inst) && inst.Phase != Running:
		return "started without running"
	case !decided.Live(inst) && inst.Phase != Running:
		return "not live without running"
	case k == Readiness && is.Held:
		return "readiness on hold"
	case v == Attempt && is.Held:
		return "attempt on hold"
	case v == Attempt && !inst.running():
		return "attempt without a running instance"
	case v == Attempt && started == (k == Startup) && !is.Inherited:
		return "attempt through the started gate"
	case v == Attempt && is.InstanceID != inst.ID:
		return "attempt for another instance"
	case v != Quit && !was.Exists:
		return "a removed probe goes on"
	case was.Last != is.Last, was.Run != is.Run && (inst.From != was.InstanceID || is.Run != 0 || is.Last != Failure):
		return "a turn changed the run"
	case is.Inherited && (is.Result != Success || k == Liveness || is.Held):
		return "more than a Success is inherited"
	case inst.known() && was.InstanceID != inst.ID && is.Held:
		return "a new instance on hold"
	case inst.Phase == Running && v == Wait && !is.Held && is.InstanceID == was.InstanceID && is.Result != was.Result:
		return "a result changed without an attempt"
	}
	for _, other := range Kinds() {
		if other != k && before.Probe(other, 0) != decided.Probe(other, 0) {
			return "a turn changed another kind"
		}
	}
	return ""
}

// foldViolation returns which promise a fold has broken, or "".
func foldViolation(k Kind, decided, folded Target, r Result) string {
	was, is, params := decided.Probe(k, 0), folded.Probe(k, 0), decided.Params(k, 0)
	if was.Inherited && r == Failure {
		was.Result = k.initial() // an inherited result stands until the first attempt
	}
	threshold := params.FailureThreshold
	if r == Success {
		threshold = params.SuccessThreshold
	}
	run := 1
	if was.Last == r {
		run = was.Run + 1
	}
	reached := run >= threshold
	switch {
	case is.Inherited:
		return "an attempt leaves what is inherited unconfirmed"
	case is.Last != r:
		return "last is not the outcome"
	case reached != (is.Result == r) && was.Result != r:
		return "the threshold did not decide"
	case !reached && is.Result != was.Result:
		return "a result changed below its threshold"
	case k != Readiness && is.Result == Failure && r == Failure && was.maxHold == Never:
		if is.Run != 0 || is.Held {
			return "a failure counts, or holds, where nothing may be held"
		}
	case is.Held && is.Run != 0, !is.Held && is.Run != run:
		return "the run is wrong"
	case is.Held && k == Liveness && r == Success:
		return "liveness held by a success"
	case is.Held && r == Failure && was.maxHold == Never:
		return "held although never"
	case reached && !is.Held && k == Startup && r == Success:
		return "startup not held by a success"
	case reached && !is.Held && k != Readiness && r == Failure && was.maxHold != Never:
		return "not held by a failure"
	}
	return ""
}

// reloadViolation returns which promise a reload has broken, or "". A reload that changes
// neither action nor thresholds changes nothing. Any other reload changes only the run and the
// hold of a probe.
func reloadViolation(before Target, params [NumKinds]Params, inst Instance) string {
	if !allExist(before, params) {
		return ""
	}
	delayed := params
	for k := range delayed {
		delayed[k].InitialDelay = time.Hour
	}
	if same := reconfigured(before, delayed, [NumKinds]bool{}, inst); same.probes != before.probes {
		return "a reload of a delay alone changed a probe"
	}
	other := reconfigured(before, params, [NumKinds]bool{true, true, true}, inst)
	for k := range params {
		want := before.probes[k]
		want.Run, want.Held = 0, false
		if other.probes[k] != want {
			return "another action did not begin anew, or changed a result"
		}
	}
	if other.Started(inst) != before.Started(inst) || other.Ready(inst) != before.Ready(inst) || other.Live(inst) != before.Live(inst) {
		return "another action changed what the target is said to be"
	}
	return ""
}

// normal maps states that behave alike onto one state, so that the number of states is finite.
// It limits runs to the thresholds, and keeps of IDs and times only the differences that matter
// later.
func normal(t Target, current string) Target {
	for k := range t.probes {
		p := &t.probes[k]
		p.Run = min(p.Run, max(t.params[k].SuccessThreshold, t.params[k].FailureThreshold))
		if p.InstanceID != "" && p.InstanceID != current {
			p.InstanceID = "old"
		}
		if !p.Held {
			p.attemptAt = time.Time{}
		}
	}
	return t
}

// Every state that the probes can reach, from every view of an instance and with every outcome,
// keeps every promise. There are exactly as many states as the table says.
func TestEveryReachableState(t *testing.T) {
	for _, tt := range []struct {
		maxHold time.Duration
		states  int
	}{{UntilNewInstance, 12336}, {Never, 472}, {time.Second, 562}} {
		var params [NumKinds]Params
		for k := range params {
			params[k] = Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 2}
		}
		params[Readiness].SuccessThreshold = 2
		if tt.maxHold != UntilNewInstance {
			params[Readiness] = Params{} // a probe that is never held adds no states of interest
		}
		var views []Instance
		for _, id := range []string{"new", "old"} {
			for _, v := range []Instance{
				{Phase: Waiting},
				{Phase: Terminated},
				{Phase: Terminated, Final: true},
				{Phase: Running},
				{Phase: Running, StartedAt: epoch.Add(time.Hour)},
				{Phase: Running, Deleting: true},
				{Phase: Running, From: "before"},
			} {
				v.ID, v.MaxHold = id, tt.maxHold
				if v.From != "" {
					v.From = map[string]string{"new": "old", "old": "new"}[id]
				}
				views = append(views, v)
			}
		}
		views = append(views, Instance{}, Instance{Final: true}, Instance{ID: "new"}, Instance{Phase: Running})

		seen := map[Target]bool{New(params): true}
		queue := []Target{New(params)}
		for len(queue) > 0 {
			state := queue[0]
			queue = queue[1:]
			for _, inst := range views {
				if bad := reloadViolation(state, params, inst); bad != "" {
					t.Fatalf("%s: %+v with %+v", bad, state, inst)
				}
				for _, k := range Kinds() {
					times := []time.Time{epoch}
					if tt.maxHold > 0 && state.Probe(k, 0).Held {
						times = append(times, epoch.Add(time.Minute)) // the end of the hold
					}
					for _, now := range times {
						decided, v := state.Next(k, 0, inst, state.Started(inst), now)
						if bad := violation(k, state, inst, state.Started(inst), v, decided); bad != "" {
							t.Fatalf("%s: %v of %+v with %+v gives %v and %+v", bad, k, state, inst, v, decided)
						}
						var next []Target
						switch v {
						case Quit:
							next = []Target{decided.Remove(k, 0)}
						case Wait:
							next = []Target{decided}
						case Attempt:
							next = []Target{decided} // an attempt that could not be made
							for _, r := range []Result{Success, Failure} {
								folded := decided.Fold(k, 0, r)
								if bad := foldViolation(k, decided, folded, r); bad != "" {
									t.Fatalf("%s: %v of %v into %+v gives %+v", bad, r, k, decided, folded)
								}
								next = append(next, folded)
							}
						}
						for _, n := range next {
							for i := range n.probes {
								if n.probes[i].Held {
									n.probes[i].attemptAt = epoch
								}
							}
							// "new" becomes "old" when the source reports another life.
							if n = normal(n, "new"); !seen[n] {
								seen[n] = true
								queue = append(queue, n)
							}
						}
					}
				}
			}
		}
		t.Logf("max hold %v: %d states", tt.maxHold, len(seen))
		if len(seen) != tt.states {
			t.Errorf("max hold %v: %d reachable states, want %d", tt.maxHold, len(seen), tt.states)
		}
	}
}

// Whatever a source says, in whatever order, the gate keeps every promise.
func FuzzTurns(f *testing.F) {
	f.Add([]byte{3, 2, 0}, []byte("\x00\x01\x02\x03\x40\x41\x42\x43\x80"))
	f.Add([]byte{1, 1, 1}, []byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte{255, 7, 9}, []byte{255, 254, 253, 128, 127, 64, 63, 0})
	f.Fuzz(func(t *testing.T, shape, turns []byte) {
		var params [NumKinds]Params
		for i := range min(len(shape), NumKinds) {
			b := int(shape[i])
			params[i] = Params{
				Configured:       b&1 == 1,
				SuccessThreshold: b >> 1 & 3,
				FailureThreshold: b >> 3 & 3,
				InitialDelay:     time.Duration(b>>5&1) * time.Second,
			}
		}
		target := New(params)
		now := epoch
		for i, b := range turns {
			k := Kind(b % NumKinds)
			inst := Instance{
				ID:        []string{"", "a", "b", "c"}[b>>2&3],
				Phase:     Phase(b >> 4 & 3),
				Final:     b>>6&1 == 1,
				Deleting:  b > 250,
				StartedAt: epoch.Add(time.Duration(b&7) * 500 * time.Millisecond),
				MaxHold:   []time.Duration{UntilNewInstance, Never, time.Second, time.Minute}[b>>1&3],
			}
			if inst.Phase == PhaseUnknown {
				inst.ID = ""
			}
			now = now.Add(time.Duration(b) * 10 * time.Millisecond)
			started := target.Started(inst)
			decided, v := target.Next(k, 0, inst, started, now)
			if bad := violation(k, target, inst, started, v, decided); bad != "" {
				t.Fatalf("turn %d: %s: %+v with %+v gives %v and %+v", i, bad, target, inst, v, decided)
			}
			target = decided
			switch v {
			case Quit:
				target = target.Remove(k, 0)
			case Attempt:
				r := Result(b >> 7)
				folded := target.Fold(k, 0, r)
				if bad := foldViolation(k, target, folded, r); bad != "" {
					t.Fatalf("turn %d: %s: %v into %+v gives %+v", i, bad, r, target, folded)
				}
				target = folded
			case Wait:
			}
			if b%61 == 0 && allExist(target, params) {
				again := reconfigured(target, params, [NumKinds]bool{}, inst)
				if again != target {
					t.Fatalf("turn %d: a reload without a change made %+v of %+v", i, again, target)
				}
			}
		}
	})
}

// allExist reports whether no configured probe has been removed.
func allExist(t Target, params [NumKinds]Params) bool {
	for _, k := range Kinds() {
		if params[k].Configured != t.Probe(k, 0).Exists {
			return false
		}
	}
	return true
}

// A turn and its fold allocate nothing.
func BenchmarkTurn(b *testing.B) {
	var params [NumKinds]Params
	for k := range params {
		params[k] = Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 3}
	}
	target, inst := New(params), alive("a")
	b.ReportAllocs()
	for b.Loop() {
		next, v := target.Next(Readiness, 0, inst, true, epoch)
		if v != Attempt {
			b.Fatal(v)
		}
		target = next.Fold(Readiness, 0, Success)
	}
}

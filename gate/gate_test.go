// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// alive returns an instance that has run for an hour.
func alive(id string) Instance {
	return Instance{ID: id, Phase: Running, StartedAt: epoch.Add(-time.Hour)}
}

// one returns a target with a single probe.
func one(k Kind, p Params) Target {
	var params [NumKinds]Params
	p.Configured = true
	params[k] = p
	return New(params)
}

// play gives one probe a turn for each letter of script and returns the result after each turn.
//
// The letters: S and F are outcomes of attempts; E is an attempt that could not be made; n is
// an attempt with outcome S at a new instance; w is a waiting instance; t is an instance that
// has ended; 0 is no instance in view; d is an instance that is being deleted.
//
// A returned letter is in lower case for a turn without an attempt. An ! marks a hold, an x the
// end of the probe.
func play(target Target, k Kind, maxHold time.Duration, script string) (string, Target) {
	var out strings.Builder
	id := "a"
	for i, c := range script {
		inst := alive(id)
		switch c {
		case 'n':
			id += "'"
			inst = alive(id)
		case 'w':
			inst.Phase = Waiting
		case 't':
			inst.Phase, inst.Final = Terminated, true
		case '0':
			inst = Instance{}
		case 'd':
			inst.Deleting = true
		}
		inst.MaxHold = maxHold
		var v Verdict
		target, v = target.Next(k, 0, inst, k != Startup, epoch.Add(time.Duration(i)*time.Second))
		if v == Attempt && c != 'E' {
			target = target.Fold(k, 0, map[bool]Result{true: Failure, false: Success}[c == 'F'])
		}
		said := target.Probe(k, 0).Result.String()[:1]
		if v != Attempt {
			said = strings.ToLower(said)
		}
		out.WriteString(said)
		if target.Probe(k, 0).Held {
			out.WriteString("!")
		}
		if v == Quit {
			out.WriteString("x")
			break
		}
	}
	return out.String(), target
}

// Each row says which results a script gives.
func TestScripts(t *testing.T) {
	known := Params{SuccessThreshold: 1, FailureThreshold: 3}
	slow := Params{SuccessThreshold: 3, FailureThreshold: 1}
	for _, tt := range []struct {
		promise string
		kind    Kind
		params  Params
		maxHold time.Duration
		script  string
		want    string
	}{
		{"the third failure in a row fails liveness and holds it", Liveness, known, 0, "FFFSS", "SSF!f!f!"},
		{"a success between failures starts the run anew", Liveness, known, 0, "FFSFF", "SSSSS"},
		{"rule 4.22: the run survives a new instance, one more failure kills it", Liveness, known, 0, "FFwF", "SSfF!"},
		{"rule 4.22: after a hold the run begins at 0 for the new instance", Liveness, known, 0, "FFFnFFF", "SSF!SSSF!"},
		{"rule 4.22: readiness carries its successes over", Readiness, Params{SuccessThreshold: 3, FailureThreshold: 3}, 0, "SSSnS", "FFSSS"},
		{"rule 4.17: startup holds after success", Startup, known, 0, "FS", "US!"},
		{"rule 4.17: startup holds after failure", Startup, known, 0, "FFF", "UUF!"},
		{"rule 4.17: readiness never holds", Readiness, known, 0, "SFFFFS", "SSSFFS"},
		{"rule 4.18: a new instance lifts the hold and brings the initial value back", Startup, known, 0, "Sn", "S!S!"},
		{"rule 4.7: on hold, a terminated instance changes nothing", Startup, known, 0, "St", "S!s!"},
		{"rule 4.8: a probe fails at once if its instance does not run", Liveness, known, 0, "SwS", "SfS"},
		{"rule 4.8: a final end of the instance ends the probe", Readiness, known, 0, "St", "Sfx"},
		{"rule 4.9: deletion ends liveness with Success", Liveness, known, 0, "FFd", "SSsx"},
		{"rule 4.9: deletion does not concern readiness", Readiness, known, 0, "Sdd", "SSS"},
		{"rules 4.12 and 4.23: an attempt that could not be made changes nothing", Liveness, known, 0, "FEFEF", "SSSSF!"},
		{"rule 4.15: thresholds of 0 act at once", Readiness, Params{}, 0, "SFS", "SFS"},
		{"rule 4.26: a gap in the view resets nothing", Liveness, known, 0, "FF0F", "SSsF!"},
		{"successThreshold counts successes in a row", Readiness, slow, 0, "SSSFSSS", "FFSFFFS"},
		{"static: no hold after failure, one success recovers", Liveness, known, Never, "FFFFS", "SSFFS"},
		{"static: further failures do not count against the next instance", Liveness, known, Never, "FFFFFnFFF", "SSFFFSSSF"},
		{"static: startup recovers too, then holds", Startup, known, Never, "FFFFS", "UUFFS!"},
		{"bounded hold: 4 s after the last attempt probing resumes; one success recovers", Liveness, known, 4 * time.Second, "FFFSSSSS", "SSF!f!f!f!SS"},
		{"bounded hold: the run begins at 0, three more failures hold again", Liveness, known, 4 * time.Second, "FFFFFFFFFF", "SSF!f!f!f!FFF!f!"},
		{"bounded hold: a startup success is held for ever", Startup, known, 4 * time.Second, "SSSSSSSS", "S!s!s!s!s!s!s!s!"},
	} {
		if got, _ := play(one(tt.kind, tt.params), tt.kind, tt.maxHold, tt.script); got != tt.want {
			t.Errorf("%s: %s %q gives %q, want %q", tt.promise, tt.kind, tt.script, got, tt.want)
		}
	}
}

// With a delay of 10 s there is no attempt at 9.999 s, but one attempt at 10 s. A start up to a
// second in the future counts as now; a start that is a full second ahead blocks (rule 4.10).
func TestInitialDelay(t *testing.T) {
	for _, tt := range []struct {
		delay, age time.Duration
		want       Verdict
	}{
		{10 * time.Second, 9999 * time.Millisecond, Wait},
		{10 * time.Second, 10 * time.Second, Attempt},
		{250 * time.Millisecond, 249 * time.Millisecond, Wait},
		{250 * time.Millisecond, 250 * time.Millisecond, Attempt},
		{0, 0, Attempt},
		{0, -999 * time.Millisecond, Attempt},
		{0, -time.Second, Wait},
		{-100 * time.Second, -100 * time.Second, Attempt},
		{-100 * time.Second, -101 * time.Second, Wait},
	} {
		target := one(Readiness, Params{InitialDelay: tt.delay})
		inst := Instance{ID: "a", Phase: Running, StartedAt: epoch.Add(-tt.age)}
		if _, got := target.Next(Readiness, 0, inst, true, epoch); got != tt.want {
			t.Errorf("delay %v, %v after the start: got %v, want %v", tt.delay, tt.age, got, tt.want)
		}
	}
	target := one(Readiness, Params{InitialDelay: time.Hour})
	if _, got := target.Next(Readiness, 0, Instance{ID: "a", Phase: Running}, true, epoch); got != Attempt {
		t.Errorf("an instance whose start nobody knows: got %v, want attempt", got)
	}
}

// The startup probe attempts only until the target has started, the other probes only after
// that (rule 4.11).
func TestStartedGate(t *testing.T) {
	for _, k := range Kinds() {
		for _, started := range []bool{false, true} {
			want := Wait
			if started != (k == Startup) {
				want = Attempt
			}
			if _, got := one(k, Params{}).Next(k, 0, alive("a"), started, epoch); got != want {
				t.Errorf("%v, started=%t: got %v, want %v", k, started, got, want)
			}
		}
	}
}

// If a source says that a target has ended for good, its probes quit and change nothing. A kind
// that is not configured quits at once.
func TestQuit(t *testing.T) {
	target := one(Liveness, Params{})
	next, v := target.Next(Liveness, 0, Instance{Final: true}, true, epoch)
	if v != Quit || next != target {
		t.Errorf("a final instance that the probe has not met: got %v, %+v, want quit and no change", v, next)
	}
	if _, v := target.Next(Startup, 0, alive("a"), true, epoch); v != Quit {
		t.Errorf("a kind that is not configured: got %v, want quit", v)
	}
	if _, v := target.Remove(Liveness, 0).Next(Liveness, 0, alive("a"), true, epoch); v != Quit {
		t.Errorf("a removed probe: got %v, want quit", v)
	}
}

// Started, ready and live follow the results of this very instance. An instance that does not
// run is neither started nor ready, and nobody is to kill it.
func TestDerived(t *testing.T) {
	all := [NumKinds]Params{{Configured: true}, {Configured: true}, {Configured: true}}
	with := func(k Kind, t Target, r Result) Target { return t.Adopt(k, 0, alive("a"), r) }
	fresh := New(all)
	started := with(Startup, fresh, Success)
	ready := with(Readiness, started, Success)
	dead := with(Liveness, ready, Failure)
	ended := alive("a")
	ended.Phase = Terminated
	for _, tt := range []struct {
		what                 string
		target               Target
		inst                 Instance
		started, ready, live bool
	}{
		{"no results yet", fresh, alive("a"), false, false, true},
		{"startup Unknown", with(Startup, fresh, Unknown), alive("a"), false, false, true},
		{"startup Failure", with(Startup, ready, Failure), alive("a"), false, false, false},
		{"started", started, alive("a"), true, false, true},
		{"ready", ready, alive("a"), true, true, true},
		{"not live, yet ready: liveness has no part in it", dead, alive("a"), true, true, false},
		{"another instance", dead, alive("b"), false, false, true},
		{"ended", dead, ended, false, false, true},
		{"nobody knows", dead, Instance{}, false, false, true},
		{"no probes left", ready.Remove(Startup, 0).Remove(Readiness, 0), alive("b"), true, true, true},
		{"no readiness probe", New([NumKinds]Params{Liveness: {Configured: true}}), alive("b"), true, true, true},
	} {
		if s, r, l := tt.target.Started(tt.inst), tt.target.Ready(tt.inst), tt.target.Live(tt.inst); s != tt.started || r != tt.ready || l != tt.live {
			t.Errorf("%s: started %t, ready %t, live %t; want %t, %t, %t", tt.what, s, r, l, tt.started, tt.ready, tt.live)
		}
	}
}

// A probe publishes its initial value for an instance that the probe has not met. If no
// instance is in view, the probe publishes its last result.
func TestResult(t *testing.T) {
	fresh := New([NumKinds]Params{{Configured: true}, {Configured: true}, {Configured: true}})
	for i, want := range []Result{Unknown, Failure, Success} {
		k := Kinds()[i]
		met := fresh.Adopt(k, 0, alive("a"), Failure)
		for _, tt := range []struct {
			target Target
			inst   Instance
			want   Result
		}{{fresh, alive("a"), want}, {fresh, Instance{}, want}, {met, alive("a"), Failure}, {met, alive("b"), want}, {met, Instance{}, Failure}} {
			if got := tt.target.Result(k, 0, tt.inst); got != tt.want {
				t.Errorf("%v of %+v in %+v: got %v, want %v", k, tt.inst, tt.target.Probe(k, 0), got, tt.want)
			}
		}
	}
}

// reconfigured returns the state of a target under other numbers. changed says which actions are
// others.
func reconfigured(before Target, params [NumKinds]Params, changed [NumKinds]bool, inst Instance) Target {
	origin := func(k Kind, _ int) Origin { return Origin{Found: true, Changed: changed[k]} }
	return before.Reconfigure(New(params), origin, inst)
}

// A new configuration keeps the result, the run and the hold of every kept probe. The run and
// the hold end if thresholds or the action differ.
func TestReconfigure(t *testing.T) {
	p := Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 1}
	before := one(Liveness, p)
	_, before = play(before, Liveness, 0, "F")
	none := [NumKinds]bool{}

	same := reconfigured(before, [NumKinds]Params{Liveness: p}, none, alive("a"))
	if same != before {
		t.Errorf("equal parameters: got %+v, want %+v", same, before)
	}
	changed := reconfigured(before, [NumKinds]Params{Liveness: p}, [NumKinds]bool{Liveness: true}, alive("a"))
	if got := changed.Probe(Liveness, 0); got.Held || got.Result != Failure {
		t.Errorf("another action: got %+v, want Failure, not held", got)
	}
	for _, other := range []Params{
		{Configured: true, SuccessThreshold: 1, FailureThreshold: 2},
		{Configured: true, SuccessThreshold: 2, FailureThreshold: 1},
	} {
		if got := reconfigured(before, [NumKinds]Params{Liveness: other}, none, alive("a")).Probe(Liveness, 0); got.Held || got.Result != Failure {
			t.Errorf("thresholds %+v: got %+v, want Failure, not held", other, got)
		}
	}

	delayed := p
	delayed.InitialDelay = time.Second
	grown := reconfigured(before, [NumKinds]Params{delayed, delayed, delayed}, none, alive("a"))
	if !grown.Started(alive("a")) || !grown.Ready(alive("a")) || grown.Live(alive("a")) || !grown.Probe(Liveness, 0).Held {
		t.Errorf("new startup and readiness probes of a ready target: got %+v, want started, ready and still held", grown)
	}
	unready := reconfigured(one(Startup, p), [NumKinds]Params{p, p, {}}, none, alive("a"))
	if unready.Started(alive("a")) || unready.Probe(Readiness, 0).InstanceID != "" {
		t.Errorf("a new readiness probe of a target that has not started: got %+v, want nothing adopted", unready)
	}
	_, run := play(one(Readiness, p), Readiness, 0, "SSS")
	if got := reconfigured(run, [NumKinds]Params{Readiness: delayed}, none, alive("a")).Probe(Readiness, 0).Run; got != 3 {
		t.Errorf("run after a reload with another delay: got %d, want 3", got)
	}
	if got := reconfigured(run, [NumKinds]Params{Readiness: p}, [NumKinds]bool{Readiness: true}, alive("a")).Probe(Readiness, 0).Run; got != 0 {
		t.Errorf("run after a reload with another action: got %d, want 0", got)
	}
	if gone := reconfigured(before, [NumKinds]Params{Readiness: p}, none, alive("a")); gone.Probe(Liveness, 0).Exists || !gone.Live(alive("a")) {
		t.Errorf("a kind that is no longer configured: got %+v", gone)
	}
}

// A probe that was removed begins again like a new probe. A probe that is not configured does
// not begin again.
func TestRestore(t *testing.T) {
	target := one(Liveness, Params{SuccessThreshold: 1, FailureThreshold: 3})
	_, failed := play(target, Liveness, 0, "FFF")
	restored := failed.Remove(Liveness, 0).Restore(Liveness, 0).Restore(Startup, 0)
	if restored != target {
		t.Errorf("got %+v, want %+v", restored, target)
	}
}

// An instance that gets another ID is still the same instance, and its results stay.
func TestRename(t *testing.T) {
	_, target := play(one(Readiness, Params{}), Readiness, 0, "S")
	if renamed := target.Rename("a", "b"); !renamed.Ready(alive("b")) || renamed.Ready(alive("a")) {
		t.Errorf("ready as b %t, as a %t; want true, false", renamed.Ready(alive("b")), renamed.Ready(alive("a")))
	}
	if target.Rename("other", "b") != target {
		t.Error("another instance was renamed")
	}
}

// A hold ends exactly when HoldEnd says. A hold that only a new instance ends has no end, and
// neither has a probe without a hold after a failure.
func TestHoldEnd(t *testing.T) {
	began := time.Unix(1000, 0)
	held := func(k Kind, r Result, maxHold time.Duration) (Target, Instance) {
		inst := Instance{ID: "a", Phase: Running, MaxHold: maxHold}
		target, verdict := one(k, Params{FailureThreshold: 1}).Next(k, 0, inst, k != Startup, began)
		if verdict != Attempt {
			t.Fatalf("%v: %v", k, verdict)
		}
		return target.Fold(k, 0, r), inst
	}
	for _, k := range []Kind{Startup, Liveness} {
		target, inst := held(k, Failure, time.Minute)
		end := target.Probe(k, 0).HoldEnd(inst.MaxHold)
		if want := began.Add(time.Minute); !end.Equal(want) {
			t.Errorf("%v: ends at %v, want %v", k, end, want)
		}
		for at, want := range map[time.Time]Verdict{end.Add(-1): Wait, end: Attempt} {
			if _, got := target.Next(k, 0, inst, k != Startup, at); got != want {
				t.Errorf("%v: %v at %v, want %v", k, got, at, want)
			}
		}
		// The current maximum of the source decides.
		if got := target.Probe(k, 0).HoldEnd(Never); !got.Equal(began) {
			t.Errorf("%v: ends at %v although the source no longer sees restarts", k, got)
		}
		if got := target.Probe(k, 0).HoldEnd(UntilNewInstance); !got.IsZero() {
			t.Errorf("%v: ends at %v until a new instance", k, got)
		}
	}
	for _, k := range Kinds() {
		if target, inst := held(k, Success, time.Minute); !target.Probe(k, 0).HoldEnd(inst.MaxHold).IsZero() {
			t.Errorf("%v: the hold of a success has an end", k)
		}
	}
}

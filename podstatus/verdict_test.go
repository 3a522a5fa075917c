// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// probe returns the snapshot of a probe with the thresholds 2 and 3.
func probe(k gate.Kind, result gate.Result, last gate.Result, run int) prober.ProbeStatus {
	p := prober.ProbeStatus{Kind: k, Period: time.Second, SuccessThreshold: 2, FailureThreshold: 3, Result: result, Last: last, Run: run}
	if last == gate.Failure {
		p.ConsecutiveFailures, p.Reason = uint64(run), "timeout" //nolint:gosec // not negative
	}
	return p
}

// Of each state of a target, the condition of each state says whether it holds, and why not in
// a bounded reason and in words that have no output of the target.
func TestWords(t *testing.T) {
	none := probe(gate.Readiness, gate.Failure, 0, 0)
	ended := running("shop", readiness(0))
	ended.Running, ended.Started, ended.Ready = false, false, false
	starting := running("shop", probe(gate.Startup, gate.Unknown, gate.Failure, 1))
	odd := running("shop")
	odd.Live = false
	for _, tt := range []struct {
		name                 string
		target               prober.TargetStatus
		ready, started, live string
	}{
		{"well", isReady("shop"), "", "", ""},
		{"not ready", notReady("shop"), "ProbesFailing readiness: http_status (3/3)", "", ""},
		{"failing below the threshold", running("shop", readiness(2)), "", "", ""},
		{"failing for long", running("shop", readiness(99)), "ProbesFailing readiness: http_status (3/3)", "", ""},
		{"not enough successes", running("shop", probe(gate.Readiness, gate.Failure, gate.Success, 1)), "ProbesFailing readiness: succeeding again (1/2)", "", ""},
		{"no attempt yet", running("shop", none), "TargetsStarting starting", "", ""},
		{"not running", ended, "TargetsNotRunning not running", "TargetsNotRunning not running", ""},
		{"starting", starting, "TargetsStarting starting", "TargetsStarting starting", ""},
		{"the start has failed", running("shop", probe(gate.Startup, gate.Failure, gate.Failure, 3)), "ProbesFailing startup: timeout (3/3)", "ProbesFailing startup: timeout (3/3)", "ProbesFailing startup: timeout (3/3)"},
		{"not live", running("shop", probe(gate.Liveness, gate.Failure, gate.Failure, 3)), "", "", "ProbesFailing liveness: timeout (3/3)"},
		{"not live, and nobody knows why", odd, "", "", "ProbesFailing not live"},
	} {
		for state, want := range map[string]string{config.StateReady: tt.ready, config.StateStarted: tt.started, config.StateLive: tt.live} {
			target := tt.target
			is := word{kind: shopReady, holds: true, reason: "ProbesSucceeding"}
			if reason, text, found := strings.Cut(want, " "); found {
				is = word{kind: shopReady, reason: reason, message: "shop: " + text}
			}
			if got := wordFor(&config.PodCondition{Type: shopReady, State: state}, []*prober.TargetStatus{&target}); got != is {
				t.Errorf("%s, %s: %+v, want %+v", tt.name, state, got, is)
			}
		}
	}
}

// A condition holds if all of its targets are in the state. Otherwise its reason is the worst
// of theirs, and its message names the first 10 of those that are not.
func TestWordOfManyTargets(t *testing.T) {
	ended := notReady("ended")
	ended.Running, ended.Started = false, false
	starting := running("starting", probe(gate.Startup, gate.Unknown, gate.Failure, 1))
	failed, well := notReady("failed"), isReady("well")
	c := &config.PodCondition{Type: shopReady, State: config.StateReady}
	for _, tt := range []struct {
		targets []*prober.TargetStatus
		want    string
	}{
		{[]*prober.TargetStatus{&well, &well}, "ProbesSucceeding "},
		{[]*prober.TargetStatus{&well, &starting}, "TargetsStarting starting: starting"},
		{[]*prober.TargetStatus{&starting, &ended}, "TargetsNotRunning starting: starting; ended: not running"},
		{[]*prober.TargetStatus{&ended, &failed, &starting}, "ProbesFailing ended: not running; failed: readiness: http_status (3/3); starting: starting"},
	} {
		if w := wordFor(c, tt.targets); w.reason+" "+w.message != tt.want {
			t.Errorf("%s %s, want %s", w.reason, w.message, tt.want)
		}
	}
	var many []*prober.TargetStatus
	for range 1000 {
		long := notReady(strings.Repeat("n", 63))
		many = append(many, &long)
	}
	w := wordFor(c, many)
	if n := strings.Count(w.message, "http_status"); n != mostNamed || !strings.HasSuffix(w.message, "; and 990 more") || len(w.message) > 1200 {
		t.Errorf("%d targets in %d bytes: %s", n, len(w.message), w.message)
	}
}

// A target is settled once each of its probes has made an attempt that counts, or has had 2
// periods and a timeout in which it could have made one.
func TestSettling(t *testing.T) {
	begin := time.Unix(1000, 0)
	silent := prober.ProbeStatus{Kind: gate.Readiness, Period: time.Second, SuccessThreshold: 1, Result: gate.Failure}
	slow := silent
	slow.Timeout = 1500 * ms
	gated := silent
	gated.Gated, gated.InitialDelay = true, 5*time.Second
	tried := readiness(0)
	held := prober.ProbeStatus{Kind: gate.Startup, Period: 10 * time.Second, Held: true}
	asking := prober.ProbeStatus{Kind: gate.Startup, Period: 10 * time.Second, Result: gate.Unknown}
	failing := probe(gate.Startup, gate.Unknown, gate.Failure, 1)
	more := probe(gate.Readiness, gate.Failure, gate.Success, 1) // 1 of 2 successes
	up := func(at time.Duration, probes ...prober.ProbeStatus) look { return look{at, true, probes} }
	down := func(at time.Duration, probes ...prober.ProbeStatus) look { return look{at, false, probes} }
	for _, tt := range []struct {
		name  string
		looks []look
		want  string // s for settled, one for each look
	}{
		{"an attempt", []look{up(0, silent), up(500*ms, tried)}, "-s"},
		{"two periods", []look{up(0, silent), up(1999*ms, silent), up(2*time.Second, silent)}, "--s"},
		{"a slow answer", []look{up(0, slow), up(3499*ms, slow), up(3500*ms, slow)}, "--s"},
		{"for ever", []look{up(0, tried), up(time.Hour, silent), down(2*time.Hour, silent)}, "sss"},
		{"each kind", []look{up(0, asking, silent), up(time.Second, asking, tried), up(2*time.Second, held, tried)}, "--s"},
		{"a failed attempt", []look{up(0, failing, silent), up(2*time.Second, failing, silent)}, "-s"},
		{"a gate that opens", []look{up(0, asking, gated), up(9*time.Second, asking, gated), up(10*time.Second, held, silent), up(11999*ms, held, silent), up(12*time.Second, held, silent)}, "----s"},
		{"an initial delay", []look{up(0, gated), up(6999*ms, gated), up(7*time.Second, gated)}, "--s"},
		{"a source that does not see", []look{down(0, gated), down(time.Hour, gated), up(time.Hour+6999*ms, gated), up(time.Hour+7*time.Second, gated)}, "---s"},
		{"successThreshold", []look{up(0, silent), up(time.Second, more), up(2500*ms, more), up(2600*ms, tried)}, "---s"},
		{"successThreshold, in vain", []look{up(0, silent), up(time.Second, more), up(2999*ms, more), up(3*time.Second, more)}, "---s"},
		{"no probe", []look{up(0)}, "s"},
	} {
		var s settling
		got := ""
		for _, l := range tt.looks {
			settled := "-"
			if s.see(&prober.TargetStatus{Name: "shop", Probes: l.probes}, l.sourceUp, begin.Add(l.at)) {
				settled = "s"
			}
			got += settled
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// look is a look at a target.
type look struct {
	at       time.Duration
	sourceUp bool
	probes   []prober.ProbeStatus
}

// A probe that a reload adds to a settled target has its time, too, and again after the probe
// was removed. The other probes stay settled. A new life of the target is told at once, but a gap
// in the view is none.
func TestSettlingAfterAReload(t *testing.T) {
	silent := prober.ProbeStatus{Kind: gate.Readiness, Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, Result: gate.Failure}
	live := probe(gate.Liveness, gate.Success, gate.Success, 1)
	anew := live
	anew.Run = 0
	target := func(phase gate.Phase, id string, probes ...prober.ProbeStatus) *prober.TargetStatus {
		return &prober.TargetStatus{Name: "shop", Instance: gate.Instance{ID: id, Phase: phase}, Probes: probes}
	}
	old := target(gate.Running, "a", live)
	both, tried := target(gate.Running, "a", live, silent), target(gate.Running, "a", live, readiness(0))
	held, gap := target(gate.Running, "a", anew, silent), target(gate.PhaseUnknown, "a", live, silent)
	for _, tt := range []struct {
		name    string
		targets []*prober.TargetStatus // one each second
		want    string
	}{
		{"three seconds", []*prober.TargetStatus{old, both, both, held, both, both}, "s---ss"},
		{"an attempt", []*prober.TargetStatus{old, both, tried, both}, "s-ss"},
		{"removed and added", []*prober.TargetStatus{tried, old, both}, "ss-"},
		{"another life", []*prober.TargetStatus{old, both, target(gate.Running, "b", anew, silent)}, "s-s"},
		{"the end", []*prober.TargetStatus{old, both, target(gate.Terminated, "a", live, silent)}, "s-s"},
		{"a gap", []*prober.TargetStatus{old, gap, both, both, both}, "s---s"},
		{"a gap before", []*prober.TargetStatus{old, target(gate.PhaseUnknown, "a", live), both}, "ss-"},
	} {
		var s settling
		got := ""
		for i, target := range tt.targets {
			if s.see(target, true, time.Unix(int64(1000+i), 0)) {
				got += "s"
			} else {
				got += "-"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A target that a reload has removed is forgotten: one of that name is another one.
func TestSettlingForgets(t *testing.T) {
	var s settling
	for i := range 100 {
		name := fmt.Sprint("target-", i)
		s.see(&prober.TargetStatus{Name: name}, true, time.Now())
		s.forget([]prober.TargetStatus{{Name: name}})
		if len(s.targets) != 1 {
			t.Fatalf("%d targets", len(s.targets))
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Times and numbers have as many digits as a reader needs.
func TestWords(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct{ got, want string }{
		{took(0), "0 µs"},
		{took(999_999), "999 µs"},
		{took(time.Millisecond), "1.0 ms"},
		{took(9_949_000), "9.9 ms"},
		{took(9_950_001), "10 ms"},
		{took(999_499_999), "999 ms"},
		{took(999_500_000), "1.0 s"},
		{took(59 * time.Second), "59 s"},
		{took(90 * time.Second), "1 min 30 s"},
		{age(-time.Second), "0 s"},
		{age(59*time.Second + 999*time.Millisecond), "59 s"},
		{age(time.Minute), "1 min"},
		{age(10*time.Minute + time.Second), "10 min"},
		{age(2*time.Hour + 3*time.Minute), "2 h 3 min"},
		{age(24*time.Hour - 1), "23 h"},
		{age(25 * time.Hour), "1 d 1 h"},
		{age(400 * 24 * time.Hour), "400 d"},
		{until(now.Add(-time.Hour), now), "now"},
		{until(now.Add(40*time.Millisecond), now), "now"},
		{until(now.Add(9900*time.Millisecond), now), "in 9.9 s"},
		{until(now.Add(61*time.Second), now), "in 1 min 1 s"},
		{ago(now.Add(-61*time.Second), now), "1 min 1 s ago"},
		{clock(now.Add(-3*time.Hour), now), "00:04:05"},
		{clock(now.Add(-4*time.Hour), now), "2026-11-20 23:04:05"},
		{clock(now.AddDate(-1, 0, 0), now), "2025-11-21 03:04:05"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(1234567), "1,234,567"},
		{ordinal(1), "first"},
		{ordinal(10), "tenth"},
		{ordinal(11), "11th"},
		{ordinal(12), "12th"},
		{ordinal(21), "21st"},
		{ordinal(22), "22nd"},
		{ordinal(103), "103rd"},
		{ordinal(113), "113th"},
		{plural(1, "probe"), "1 probe"},
		{plural(0, "probe"), "0 probes"},
		{seconds(250 * time.Millisecond), "0.25 s"},
		{seconds(10 * time.Second), "10 s"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// A probe says how its thresholds count its attempts, and what the probe waits for.
func TestProbeLook(t *testing.T) {
	running := prober.TargetStatus{Running: true}
	started := prober.TargetStatus{Running: true, Started: true}
	paused := started
	paused.Details.Paused = true
	of := func(k gate.Kind, result gate.Result, failures uint64, change func(*prober.ProbeStatus)) prober.ProbeStatus {
		p := prober.ProbeStatus{Kind: k, Result: result, ConsecutiveFailures: failures, SuccessThreshold: 2, FailureThreshold: 3, InitialDelay: 5 * time.Second}
		if change != nil {
			change(&p)
		}
		return p
	}
	gated := func(p *prober.ProbeStatus) { p.Gated = true }
	held := func(p *prober.ProbeStatus) { p.Held = true }
	bounded := func(p *prober.ProbeStatus) { p.Held, p.HeldUntil = true, time.Unix(1043, 0) }
	for _, test := range []struct {
		target prober.TargetStatus
		probe  prober.ProbeStatus
		want   string
	}{
		{started, of(gate.Liveness, gate.Success, 0, nil), "ok ✓ success"},
		{started, of(gate.Startup, gate.Success, 0, held), "ok ✓ success done"},
		{started, of(gate.Liveness, gate.Success, 2, nil), "warn ! 2/3 failures"},
		{started, of(gate.Readiness, gate.Failure, 3, nil), "bad ✗ 3/3 failures"},
		{started, of(gate.Readiness, gate.Failure, 1234, nil), "bad ✗ 3/3 failures 1,234 in a row"},
		{started, of(gate.Liveness, gate.Failure, 3, held), "bad ✗ 3/3 failures, held waits for a restart"},
		{started, of(gate.Liveness, gate.Failure, 3, bounded), "bad ✗ 3/3 failures, held waits for a restart; next attempt in 43 s"},
		{started, of(gate.Readiness, gate.Failure, 0, func(p *prober.ProbeStatus) { p.Last, p.Run = gate.Success, 1 }), "wait … 1/2 successes"},
		{started, of(gate.Readiness, gate.Failure, 0, nil), "wait … no result yet"},
		{running, of(gate.Startup, gate.Unknown, 0, nil), "wait … no result yet"},
		{running, of(gate.Startup, gate.Unknown, 2, nil), "warn ! 2/3 failures"},
		{running, of(gate.Startup, gate.Unknown, 0, gated), "off ○ waits initial delay 5 s"},
		{running, of(gate.Liveness, gate.Success, 0, gated), "off ○ waits for startup"},
		{paused, of(gate.Liveness, gate.Success, 0, gated), "off ○ waits for the end of the pause"},
		{prober.TargetStatus{}, of(gate.Readiness, gate.Failure, 0, gated), "off ○ waits for an instance"},
	} {
		l, note := lookOf(&test.target, &test.probe, time.Unix(1000, 0))
		if got := strings.TrimSpace(strings.Join([]string{l.Class, l.Mark, l.Word, note}, " ")); got != test.want {
			t.Errorf("%+v: %q, want %q", test.probe, got, test.want)
		}
	}
}

// An attempt that could not be made is a trouble, too, until an attempt succeeds.
func TestProbeTrouble(t *testing.T) {
	now := time.Unix(1000, 0)
	failure := prober.Attempt{Last: now.Add(-time.Minute), Outcome: prober.UnknownOutcome, Reason: action.ExecStart, Output: " no such file\n"}
	target, p := well("app"), probe(gate.Liveness, gate.Success)
	p.Marks = []prober.Mark{{Start: failure.Last, Outcome: failure.Outcome, Reason: failure.Reason}}
	p.LastFailures = []prober.Attempt{failure}
	v := viewer{now: now, output: 5}
	if got := v.probe(&target, &p); got.Past != nil || got.Trouble == nil || got.Trouble.Outcome != "unknown" || got.Trouble.Output != "no su" || !got.Trouble.More {
		t.Errorf("after an attempt that could not be made: %+v, past %v", got.Trouble, got.Past)
	}
	p.Marks = append(p.Marks, prober.Mark{Start: now, Warning: true})
	got := v.probe(&target, &p)
	if got.Trouble != nil || got.Past == nil || got.Past.Ago != "1 min ago" {
		t.Errorf("after an attempt that could be made: %v, past %+v", got.Trouble, got.Past)
	}
	want := `<li class="u"><span>00:15:40 unknown: exec_start, 0 µs</span><li class="w"><span>00:16:40 successful with a warning, 0 µs</span>`
	if string(got.Strip) != want {
		t.Errorf("strip %s\nwant  %s", got.Strip, want)
	}
}

// The height of a bar is the duration of an attempt. The plot shows the timeout if a bar is
// near it.
func TestPlot(t *testing.T) {
	attempts := []prober.Mark{{Duration: 100 * time.Millisecond}, {Duration: 400 * time.Millisecond, Outcome: prober.Failed}, {}}
	p := newPlot(attempts, time.Second)
	if p.ShowsTimeout || p.Bars[0].Height != plotHeight/4 || p.Bars[1] != (bar{"f", barWidth + barGap, 0, barWidth, plotHeight}) || p.Bars[2].Height != 1 {
		t.Errorf("far from the timeout: %+v", p)
	}
	if want := "3 attempts took 0 µs to 400 ms; timeout 1 s"; p.Label != want {
		t.Errorf("label %q, want %q", p.Label, want)
	}
	p = newPlot(attempts[:2], 500*time.Millisecond)
	if !p.ShowsTimeout || p.TimeoutAt != 0 || p.Bars[1].Y != plotHeight-38 {
		t.Errorf("near the timeout: %+v", p)
	}
	if p := newPlot(nil, time.Second); len(p.Bars) != 0 {
		t.Errorf("of nothing: %+v", p)
	}
}

// The headline is about the worst trouble.
func TestHeadline(t *testing.T) {
	for sum, want := range map[prober.Summary]string{
		{}:             "No configuration",
		{Loaded: true}: "Nothing to probe",
		{Loaded: true, Targets: 1, Ready: 1, Live: 1}:          "The target is ready",
		{Loaded: true, Targets: 1, Live: 1}:                    "The target is not ready",
		{Loaded: true, Targets: 1}:                             "The target is neither ready nor live",
		{Loaded: true, Targets: 2000, Ready: 2000, Live: 2000}: "All 2,000 targets ready",
		{Loaded: true, Targets: 2000, Ready: 1998, Live: 2000}: "2 of 2,000 targets not ready",
		{Loaded: true, Targets: 9, Ready: 7, Live: 8}:          "2 of 9 targets not ready, 1 not live",
		{Loaded: true, Targets: 9, Ready: 9, Live: 8}:          "1 of 9 targets not live",
	} {
		if got := Headline(sum); got != want {
			t.Errorf("%+v: %q, want %q", sum, got, want)
		}
	}
}

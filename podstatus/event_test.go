// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// failed returns a probe with a run of so many failures that began at that second.
func failed(k gate.Kind, began int64, failures uint64, output string) prober.ProbeStatus {
	p := readiness(failures)
	p.Kind = k
	p.FirstFailure = &prober.Attempt{Start: time.Unix(began, 0)}
	p.LastFailures = []prober.Attempt{{Outcome: prober.Failed, Output: output}, {Outcome: prober.UnknownOutcome, Output: "no attempt"}}
	return p
}

// A run of failures is told when it begins and when the result becomes Failure, once each; if
// both are seen at once, once.
func TestRunsAreTold(t *testing.T) {
	r := runs{}
	for i, tt := range []struct {
		probe prober.ProbeStatus
		want  int
	}{
		{readiness(0), 0},
		{failed(gate.Readiness, 1, 1, "x"), 1},
		{failed(gate.Readiness, 1, 2, "x"), 0},
		{failed(gate.Readiness, 1, 3, "x"), 1},
		{failed(gate.Readiness, 1, 4, "x"), 0},
		{readiness(0), 0},
		{failed(gate.Readiness, 2, 1, "x"), 1},
		{failed(gate.Readiness, 3, 1, "x"), 1}, // nobody looked when the run before ended
		{failed(gate.Readiness, 4, 5, "x"), 1}, // nobody looked when it began
		{failed(gate.Readiness, 4, 6, "x"), 0},
	} {
		target := running("shop", tt.probe)
		if got := r.events(&target, time.Now()); len(got) != tt.want {
			t.Errorf("step %d: %+v, want %d", i+1, got, tt.want)
		}
	}
	r.forget(nil)
	if len(r) != 0 {
		t.Errorf("%d targets are remembered", len(r))
	}
}

// An event has the kind of the probe, the name of the target and the output of the last
// failure, of which it has 256 bytes at most, without unprintable characters; without an
// output it has the reason.
func TestUnhealthy(t *testing.T) {
	for _, tt := range []struct {
		kind         gate.Kind
		output, want string
	}{
		{gate.Readiness, "HTTP probe failed with statuscode: 500", "Readiness probe failed: shop: HTTP probe failed with statuscode: 500"},
		{gate.Startup, "", "Startup probe failed: shop: http_status"},
		{gate.Liveness, strings.Repeat("é", 200), "Liveness probe failed: shop: " + strings.Repeat("é", 128)},
		{gate.Liveness, "a\x1b[2J\u202eb", `Liveness probe failed: shop: a\x1b[2J\u202eb`},
	} {
		target := running("shop", failed(tt.kind, 1, 1, tt.output))
		got := runs{}.events(&target, time.Now())
		if len(got) != 1 || got[0].message != tt.want || got[0].reason != "Unhealthy" || !got[0].warning {
			t.Errorf("%+v, want %q", got, tt.want)
		}
	}
}

// 25 events go at once, then one a second, and after 25 quiet seconds 25 again. A clock that
// is set back changes nothing.
func TestBucket(t *testing.T) {
	now := time.Unix(1000, 0)
	var b bucket
	took := func(n int) (taken int) {
		for range n {
			if b.take(now) {
				taken++
			}
		}
		return taken
	}
	for i, tt := range []struct {
		after   time.Duration
		n, want int
	}{
		{0, 100, 25},
		{999 * ms, 10, 0},
		{ms, 10, 1},
		{3500 * ms, 10, 3},
		{500 * ms, 10, 1},
		{-time.Hour, 10, 0},
		{time.Second, 10, 1},
		{25 * time.Second, 100, 25},
		{time.Hour, 100, 25},
	} {
		now = now.Add(tt.after)
		if got := took(tt.n); got != tt.want {
			t.Errorf("step %d: %d of %d, want %d", i+1, got, tt.n, tt.want)
		}
	}
}

// An act is an event when it begins, as a kubelet's Killing, and a warning if it fails.
func TestActs(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		act  Act
		want event
	}{
		{Act{"shop", gate.Liveness, "", "signal", ""}, event{"shop", false, "Killing", "Target shop failed liveness probe, will be restarted by signal", now}},
		{Act{"shop", gate.Liveness, "grpc", "signal", ""}, event{"shop", false, "Killing", "Target shop failed liveness probe grpc, will be restarted by signal", now}},
		{Act{"shop", gate.Startup, "", "docker", "no\x1b such container"}, event{"shop", true, "FailedKilling", `Target shop failed startup probe, restart by docker failed: no\x1b such container`, now}},
	} {
		if got := tt.act.event(now); got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}

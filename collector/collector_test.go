// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promtest "github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/podstatus"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

var _ Prober = (*prober.Manager)(nil)

// fixed is a prober whose status never changes. It fails the test if a scrape asks for more or
// less detail than it needs.
type fixed struct {
	tb     testing.TB
	status prober.Status
}

func (f fixed) Status(d prober.Detail) prober.Status {
	if d != prober.Series {
		f.tb.Errorf("asked for detail %d, want %d", d, prober.Series)
	}
	return f.status
}

func at(seconds float64) time.Time {
	return time.UnixMilli(int64(seconds * 1000))
}

// rich is a status with something in every field.
func rich() prober.Status {
	return prober.Status{
		Summary:  prober.Summary{Loaded: true, Targets: 3, Started: 2, Ready: 1, Live: 2},
		InFlight: 4,
		Waiting:  2,
		Panics:   1,
		Lateness: prober.HistogramOf(0, time.Millisecond, 30*time.Millisecond, 20*time.Second),
		SourceUp: map[string]bool{"static": true, "docker": false},
		Statuses: []prober.TargetStatus{
			{
				Name:            "app",
				Labels:          []config.Label{{Name: "a_first", Value: "1"}, {Name: "team", Value: "payments"}},
				Source:          "static",
				Instance:        gate.Instance{ID: "static", Phase: gate.Running},
				Running:         true,
				Started:         true,
				Ready:           true,
				Live:            true,
				Changed:         prober.Changed{Started: at(1700000001), Ready: at(1700000002.5), Live: at(1700000000)},
				Restarts:        2,
				StartupDuration: 1500 * time.Millisecond,
				Probes: []prober.ProbeStatus{
					{
						Kind: gate.Startup, Action: "httpGet", Timeout: time.Second, Period: 10 * time.Second,
						SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Success, Held: true,
						Successful: 1, Failed: 2, Unknown: 1, Transitions: 1, LastRun: at(1700000000.25),
						Failures: []prober.ReasonCount{{Reason: action.ConnectionRefused, Count: 2}, {Reason: action.AgentLate, Count: 1}},
						Runs:     missed(1, 2),
						Durations: prober.Durations{
							Successful: prober.HistogramOf(3 * time.Millisecond),
							Failed:     prober.HistogramOf(time.Millisecond, 2*time.Millisecond),
							Unknown:    prober.HistogramOf(time.Second),
						},
					},
					{
						Kind: gate.Readiness, Action: "heartbeat", Timeout: 250 * time.Millisecond, Period: 500 * time.Millisecond,
						SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Success,
						Successful: 7, LastRun: at(1700000010.5), CertExpires: at(1800000000), LastHeartbeat: at(1700000009.25),
						Durations: prober.Durations{Successful: prober.HistogramOf(time.Millisecond)},
					},
				},
			},
			{
				Name: "db", Source: "docker", Instance: gate.Instance{ID: "2f1c", Phase: gate.Running},
				Labels:  []config.Label{{Name: "zone", Value: "north"}},
				Running: true, Started: true, StartupDuration: 0,
				Probes: []prober.ProbeStatus{{
					Kind: gate.Liveness, Action: "exec", Timeout: 2 * time.Second, Period: 10 * time.Second,
					SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Failure, Held: true, ConsecutiveFailures: 3,
					Failed: 3, Transitions: 1, LastRun: at(1700000020),
					Failures:  []prober.ReasonCount{{Reason: action.ExitCode, Count: 3}},
					Runs:      missed(0),
					Durations: prober.Durations{Failed: prober.HistogramOf(time.Millisecond, time.Millisecond, time.Millisecond)},
				}},
			},
			{ // nothing is known of this target, which has no labels
				Name: "new", Source: "docker", Live: true, StartupDuration: -1,
				Probes: []prober.ProbeStatus{{
					Kind: gate.Readiness, Action: "tcpSocket", Timeout: time.Second, Period: 10 * time.Second,
					SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Failure, Gated: true,
				}},
			},
		},
	}
}

func gather(tb testing.TB, cs ...prometheus.Collector) []*dto.MetricFamily {
	tb.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(cs...)
	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	return families
}

// golden compares the exposition of c with a file of testdata, or rewrites the file.
func golden(t *testing.T, name string, c prometheus.Collector) {
	t.Helper()
	var got bytes.Buffer
	for _, mf := range gather(t, c) {
		if _, err := expfmt.MetricFamilyToText(&got, mf); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Golden(t, filepath.Join("testdata", name), got.Bytes())
}

// A rich status is exactly these lines.
func TestCollectRich(t *testing.T) {
	golden(t, "rich.prom", New(fixed{t, rich()}, nil, ClassicAndNative))
}

// Without a configuration there are the agent's own metrics and no target's.
func TestCollectNothing(t *testing.T) {
	golden(t, "nothing.prom", New(fixed{t, prober.Status{}}, nil, ClassicAndNative))
}

// A target of which nothing is known has every counter and state from the start, but no reason,
// timestamp, startup duration or histogram.
func TestAbsentUntilKnown(t *testing.T) {
	status := rich()
	status.Statuses = status.Statuses[2:]
	got := map[string]int{}
	for _, mf := range gather(t, New(fixed{t, status}, nil, ClassicAndNative)) {
		if strings.HasPrefix(mf.GetName(), "prober_probe_") || strings.HasPrefix(mf.GetName(), "prober_target_") {
			got[mf.GetName()] = len(mf.GetMetric())
		}
	}
	want := map[string]int{
		"prober_probe_total": 3, "prober_probe_success": 1, "prober_probe_consecutive_failures": 1,
		"prober_probe_held": 1, "prober_probe_gated": 1, "prober_probe_transitions_total": 1,
		"prober_probe_timeout_seconds": 1, "prober_probe_period_seconds": 1,
		"prober_target_running": 1, "prober_target_started": 1, "prober_target_ready": 1, "prober_target_live": 1,
		"prober_target_restarts_total": 1, "prober_target_info": 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("series:\ngot  %v\nwant %v", got, want)
	}
}

// A removed target leaves neither series nor cached descriptors behind. After a hundred reloads
// with ever new label names, the cache has what one scrape needs.
func TestNothingIsLeftBehind(t *testing.T) {
	status := prober.Status{}
	from := snapshots{prober: proberFunc(func(prober.Detail) prober.Status { return status })}
	c := &collector{snapshots: from, form: ClassicAndNative}
	for i := range 100 {
		name := fmt.Sprintf("label_%d", i)
		status = prober.Status{Statuses: []prober.TargetStatus{{Name: "app", Labels: []config.Label{{Name: name, Value: "x"}}}}}
		for _, mf := range gather(t, c) {
			if mf.GetName() != "prober_target_live" {
				continue
			}
			if n := len(mf.GetMetric()); n != 1 || mf.GetMetric()[0].GetLabel()[0].GetName() != name {
				t.Fatalf("reload %d: got %v", i, mf.GetMetric())
			}
		}
	}
	if n := len(c.cached); n != 2 { // the agent's and the target's
		t.Errorf("%d sets of descriptors cached, want 2", n)
	}
}

type proberFunc func(prober.Detail) prober.Status

func (f proberFunc) Status(d prober.Detail) prober.Status { return f(d) }

// Scrapes in parallel do not disturb each other.
func TestParallelScrapes(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(New(fixed{t, rich()}, richActs(), ClassicAndNative))
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := reg.Gather()
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// A kind and a result that do not exist cannot break the scrape.
func TestInvalidKind(t *testing.T) {
	status := rich()
	status.Statuses[0].Probes[0].Kind = 99
	gather(t, New(fixed{t, status}, nil, ClassicAndNative))
}

// The reload metrics are 0 without a time at first, 1 with the time after a load, and 0 with
// the same time after a refused reload.
func TestReload(t *testing.T) {
	const (
		successful = "prober_exporter_config_last_reload_successful"
		timestamp  = "prober_exporter_config_last_reload_success_timestamp_seconds"
	)
	var r Reload
	expect := func(want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		for _, mf := range gather(t, &r) {
			got[mf.GetName()] = mf.GetMetric()[0].GetGauge().GetValue()
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	expect(map[string]float64{successful: 0})
	r.SetResult(true, at(1700000000.5))
	expect(map[string]float64{successful: 1, timestamp: 1700000000.5})
	r.SetResult(false, at(1700000060))
	expect(map[string]float64{successful: 0, timestamp: 1700000000.5})
}

// The counter of unknown targets has all its series from the beginning, at 0.
func TestUnknownTargets(t *testing.T) {
	c := NewUnknownTargets("live", "ready")
	c.WithLabelValues("live").Inc()
	want := `# HELP prober_exporter_unknown_target_requests_total Requests to the health endpoints for targets that are not configured.
# TYPE prober_exporter_unknown_target_requests_total counter
prober_exporter_unknown_target_requests_total{endpoint="live"} 1
prober_exporter_unknown_target_requests_total{endpoint="ready"} 0
`
	if err := promtest.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// What is written to the pod has all its series from the beginning, and none while nothing is
// written.
func TestKubernetes(t *testing.T) {
	counts, on := podstatus.Counts{ConditionsSucceeded: 5, ConditionsFailed: 4, EventsSucceeded: 3, EventsFailed: 2, EventsDropped: 1}, false
	c := NewKubernetes(func() (podstatus.Counts, bool) { return counts, on })
	if got := gather(t, c); len(got) != 0 {
		t.Errorf("without the key there is %v", got)
	}
	on = true
	want := `# HELP prober_exporter_kubernetes_synced Whether the agent's own pod has the conditions that the agent wants it to have.
# TYPE prober_exporter_kubernetes_synced gauge
prober_exporter_kubernetes_synced 0
# HELP prober_exporter_kubernetes_writes_total Writes of conditions and events to the agent's own pod by result.
# TYPE prober_exporter_kubernetes_writes_total counter
prober_exporter_kubernetes_writes_total{object="condition",result="failed"} 4
prober_exporter_kubernetes_writes_total{object="condition",result="succeeded"} 5
prober_exporter_kubernetes_writes_total{object="event",result="dropped"} 1
prober_exporter_kubernetes_writes_total{object="event",result="failed"} 2
prober_exporter_kubernetes_writes_total{object="event",result="succeeded"} 3
`
	if err := promtest.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	counts.Synced = true
	if err := promtest.CollectAndCompare(c, strings.NewReader(strings.Replace(want, "synced 0", "synced 1", 1)), "prober_exporter_kubernetes_synced"); err != nil {
		t.Error(err)
	}
}

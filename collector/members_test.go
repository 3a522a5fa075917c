// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promtest "github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// several returns a target with a startup probe, two readiness probes of which one fails, and two
// liveness probes. If more, it has a label whose name sorts between those of the agent.
func several(more bool) prober.TargetStatus {
	t := prober.TargetStatus{
		Name: "shop", Source: "static", Instance: gate.Instance{ID: "static", Phase: gate.Running},
		Running: true, Started: true, Ready: true, Live: true, StartupDuration: -1,
		Combined: []prober.CombinedStatus{
			{Kind: gate.Readiness, Members: 2, Require: 1, Succeeding: 1, Failing: 1, Result: gate.Success},
			{Kind: gate.Liveness, Members: 2, Require: 2, Succeeding: 2, Result: gate.Success},
		},
	}
	if more {
		t.Labels = []config.Label{{Name: "probe_group", Value: "front"}}
	}
	for _, p := range []struct {
		kind gate.Kind
		name string
	}{{gate.Startup, ""}, {gate.Readiness, "http"}, {gate.Readiness, "grpc"}, {gate.Liveness, "http"}, {gate.Liveness, "queue"}} {
		t.Probes = append(t.Probes, prober.ProbeStatus{
			Kind: p.kind, Name: p.name, Action: "httpGet", Timeout: time.Second, Period: 2 * time.Second,
			SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Success, Successful: 5, LastRun: at(1700000000),
		})
	}
	grpc := &t.Probes[2]
	grpc.Result, grpc.Failed, grpc.ConsecutiveFailures, grpc.Transitions = gate.Failure, 4, 3, 2
	grpc.Failures = []prober.ReasonCount{{Reason: action.Timeout, Count: 4}}
	grpc.CertExpires = at(1800000000)
	grpc.Durations.Failed = prober.HistogramOf(time.Second, time.Second, time.Second, time.Second)
	return t
}

func statusOf(targets ...prober.TargetStatus) prober.Status {
	return prober.Status{Summary: prober.Summary{Loaded: true, Targets: len(targets)}, Statuses: targets}
}

// Each series of a member of a list has the label probe, and no other series has the label. A
// target without lists has its series byte for byte, also beside a target with lists.
func TestMembers(t *testing.T) {
	status := rich()
	status.Statuses = append([]prober.TargetStatus{several(false)}, status.Statuses...)
	var ours, others bytes.Buffer
	for _, mf := range gather(t, New(fixed{t, status}, nil, ClassicAndNative)) {
		var family bytes.Buffer
		if _, err := expfmt.MetricFamilyToText(&family, mf); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(family.String()) {
			to := &others
			if strings.Contains(line, `target="shop"`) {
				to = &ours
			}
			to.WriteString(line)
		}
	}
	if want, err := os.ReadFile(filepath.Join("testdata", "rich.prom")); err != nil || others.String() != string(want) {
		t.Errorf("beside a target with lists, the other targets have (%v)\n%s", err, firstDifference(others.String(), string(want)))
	}
	golden(t, "members.prom", New(fixed{t, statusOf(several(false))}, nil, NativeOnly))
	for line := range strings.Lines(ours.String()) {
		ofKind := strings.Contains(line, `probe_type="Readiness"`) || strings.Contains(line, `probe_type="Liveness"`)
		if named := strings.Contains(line, `{probe="`); named != ofKind {
			t.Errorf("names a member: %t, want %t: %s", named, ofKind, line)
		}
	}
	for _, line := range []string{
		`prober_probe_total{probe="grpc",probe_type="Readiness",result="failed",target="shop"} 4` + "\n",
		`prober_probe_success{probe="http",probe_type="Liveness",target="shop"} 1` + "\n",
		`prober_probe_success{probe_type="Startup",target="shop"} 1` + "\n",
		`prober_target_ready{target="shop"} 1` + "\n",
	} {
		if !strings.Contains(ours.String(), line) {
			t.Errorf("no %s in\n%s", line, &ours)
		}
	}
}

// Lists of probes change nothing about the formats: ours are those of a registry. A linter and a
// pedantic registry have nothing against them.
func TestMembersExposition(t *testing.T) {
	status := rich()
	status.Statuses = append(status.Statuses, several(false), several(true))
	status.Statuses[4].Name = "a-shop"
	sameExposition(t, "members", status, ClassicAndNative)
	sameExposition(t, "members, native only", status, NativeOnly)

	reg := prometheus.NewRegistry()
	reg.MustRegister(New(fixed{t, status}, nil, ClassicAndNative))
	if problems, err := promtest.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	for _, of := range status.Statuses[3:] {
		for i := range of.Probes { // one set of labels each
			one := of
			one.Probes = of.Probes[i : i+1]
			gather(t, checked{New(fixed{t, statusOf(one)}, nil, ClassicAndNative)})
		}
	}
}

// The descriptors of members are beside those of the target, not in their place.
func TestMembersDescriptors(t *testing.T) {
	status := statusOf(several(false), several(true))
	c := &collector{snapshots: snapshots{prober: fixed{t, status}}, form: ClassicAndNative}
	for range 2 {
		gather(t, c)
		if n := len(c.cached); n != 4 { // those of each target, of which the agent shares one, and those of its members
			t.Errorf("%d sets of descriptors cached, want 4", n)
		}
	}
}

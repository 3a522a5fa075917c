// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/restart"
)

var _ Restarter = (*restart.Restarter)(nil)

// acts is a Restarter whose status never changes.
type acts restart.Status

func (a acts) Status() restart.Status { return restart.Status(a) }

// actsOf gives each second target of a status a restart block.
func actsOf(status prober.Status) acts {
	var a acts
	for i := 0; i < len(status.Statuses); i += 2 {
		t := &status.Statuses[i]
		a.Targets = append(a.Targets, restart.TargetStatus{
			Name: t.Name, Labels: t.Labels, BackOffLeft: 7500 * time.Millisecond, Limited: i == 0,
			Counts: restart.Counts{Succeeded: 4, Failed: 3, Stale: 2, DryRun: 1},
		})
	}
	return a
}

// richActs is what a Restarter says of the targets of rich: app and new have a restart block.
func richActs() acts {
	a := actsOf(rich())
	a.Targets[1].Counts, a.Targets[1].BackOffLeft = restart.Counts{}, 0
	return a
}

// A target with a restart block has a series for each result from the beginning, and says what
// is left of the back-off and whether the limit is spent. Another target has none of these series.
func TestRestarts(t *testing.T) {
	var got bytes.Buffer
	for _, mf := range gather(t, New(fixed{t, rich()}, richActs(), ClassicAndNative)) {
		if !strings.HasPrefix(mf.GetName(), "prober_target_restart_") {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&got, mf); err != nil {
			t.Fatal(err)
		}
	}
	var series []string
	for line := range strings.Lines(got.String()) {
		if !strings.HasPrefix(line, "# HELP ") {
			series = append(series, line)
		}
	}
	const want = `# TYPE prober_target_restart_actions_total counter
prober_target_restart_actions_total{result="dry_run",target="new"} 0
prober_target_restart_actions_total{result="failed",target="new"} 0
prober_target_restart_actions_total{result="stale",target="new"} 0
prober_target_restart_actions_total{result="succeeded",target="new"} 0
prober_target_restart_actions_total{a_first="1",result="dry_run",target="app",team="payments"} 1
prober_target_restart_actions_total{a_first="1",result="failed",target="app",team="payments"} 3
prober_target_restart_actions_total{a_first="1",result="stale",target="app",team="payments"} 2
prober_target_restart_actions_total{a_first="1",result="succeeded",target="app",team="payments"} 4
# TYPE prober_target_restart_back_off_seconds gauge
prober_target_restart_back_off_seconds{target="new"} 0
prober_target_restart_back_off_seconds{a_first="1",target="app",team="payments"} 7.5
# TYPE prober_target_restart_limited gauge
prober_target_restart_limited{target="new"} 0
prober_target_restart_limited{a_first="1",target="app",team="payments"} 1
`
	if strings.Join(series, "") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(series, ""), want)
	}
}

// While no target has a restart block, an agent that could act exposes what it would expose
// without a Restarter.
func TestWithoutRestarts(t *testing.T) {
	golden(t, "rich.prom", New(fixed{t, rich()}, acts{}, ClassicAndNative))
	without, _ := handlers(t, fixed{t, rich()}, nil, ClassicAndNative)
	idle, _ := handlers(t, fixed{t, rich()}, acts{}, ClassicAndNative)
	for _, accept := range []string{"text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"} {
		header := map[string][]string{"Accept": {accept}}
		got, want := ask(idle, "/metrics", header).Body.String(), ask(without, "/metrics", header).Body.String()
		if got != want || want == "" {
			t.Errorf("%q: %s\nwant\n%s", accept, firstDifference(got, want), firstDifference(want, got))
		}
	}
}

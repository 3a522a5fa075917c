// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"slices"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/prober"
)

// missed returns runs of failures, of which some were near misses.
func missed(near uint64, lengths ...float64) *prober.FailureRuns {
	r := prober.FailureRunsOf(lengths...)
	r.NearMisses = near
	return r
}

// A probe that has never failed has no series of runs. A probe whose first failures go on has the
// counter at 0 and no histogram. The classic buckets are those of runs, and a member has its name.
func TestRunSeries(t *testing.T) {
	target := several(false)
	target.Probes[3].Runs = missed(0)
	target.Probes[4].Runs = missed(2, 2, 2, 1, 30)
	ours, _ := handlers(t, fixed{t, statusOf(target)}, nil, ClassicAndNative)
	var got []string
	for line := range strings.Lines(ask(ours, "/metrics", nil).Body.String()) {
		if strings.HasPrefix(line, "prober_probe_failure_run") || strings.HasPrefix(line, "prober_probe_near") {
			got = append(got, strings.TrimSpace(strings.Replace(line, `probe_type="Liveness",target="shop"`, "…", 1)))
		}
	}
	want := []string{
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="1"} 1`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="2"} 3`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="3"} 3`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="5"} 3`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="8"} 3`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="13"} 3`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="21"} 3`,
		`prober_probe_failure_run_length_bucket{probe="queue",…,le="+Inf"} 4`,
		`prober_probe_failure_run_length_sum{probe="queue",…} 35`,
		`prober_probe_failure_run_length_count{probe="queue",…} 4`,
		`prober_probe_near_misses_total{probe="http",…} 0`,
		`prober_probe_near_misses_total{probe="queue",…} 2`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

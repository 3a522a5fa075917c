// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
)

// The API and the page have both periods of a probe, and the second only where the file has one.
func TestUnhealthyPeriod(t *testing.T) {
	one, two := well("one"), well("two")
	for i := range two.Probes {
		one.Probes[i].Period, two.Probes[i].Period = 10*time.Second, 10*time.Second
		two.Probes[i].UnhealthyPeriod = 500 * time.Millisecond
	}
	h := newServer(t, options(&fake{statuses: []prober.TargetStatus{one, two}})).Handler()
	for path, want := range map[string]string{
		"/api/v1/targets/one": `"period_seconds":10,"success_threshold"`,
		"/api/v1/targets/two": `"period_seconds":10,"unhealthy_period_seconds":0.5,"success_threshold"`,
		"/targets/one":        "<dd>10 s</dd>",
		"/targets/two":        "<dd>10 s, 0.5 s while not successful</dd>",
	} {
		if got := get(h, path).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s has no %q:\n%s", path, want, got)
		}
	}
}

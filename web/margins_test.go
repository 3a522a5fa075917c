// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
)

// The page and the API say how near a probe came to its limits in the last hour, and nothing if the
// hour has no attempt.
func TestLastHour(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		hour      *prober.LastHour
		page, api string
	}{
		{nil, "", ""},
		{
			&prober.LastHour{WorstRun: 2, Succeeded: true, SlowestSuccess: 830 * ms},
			"worst run 2 of 3, slowest success 0.83 s of 1 s",
			`"last_hour":{"worst_run":2,"slowest_success_seconds":0.83,"succeeded":true}`,
		},
		{
			&prober.LastHour{Succeeded: true, SlowestSuccess: 123456 * time.Microsecond},
			"no failure, slowest success 0.12 s of 1 s",
			`"last_hour":{"worst_run":0,"slowest_success_seconds":0.123456,"succeeded":true}`,
		},
		{
			&prober.LastHour{WorstRun: 1, Succeeded: true},
			"worst run 1 of 3, every success below 0.1 s of 1 s",
			`"last_hour":{"worst_run":1,"succeeded":true}`,
		},
		{&prober.LastHour{WorstRun: 7}, "worst run 7 of 3, no success", `"last_hour":{"worst_run":7,"succeeded":false}`},
	} {
		one := well("one")
		for i := range one.Probes {
			one.Probes[i].Timeout, one.Probes[i].FailureThreshold, one.Probes[i].LastHour = time.Second, 3, tt.hour
		}
		h := newServer(t, options(&fake{statuses: []prober.TargetStatus{one}})).Handler()
		page, api := get(h, "/targets/one").Body.String(), get(h, "/api/v1/targets/one").Body.String()
		if tt.hour == nil {
			if strings.Contains(page, "last hour") || strings.Contains(api, "last_hour") {
				t.Error("the last hour is there although nothing is known of it")
			}
			continue
		}
		if want := "<dt>last hour</dt><dd>" + tt.page + "</dd>"; strings.Count(page, want) != len(one.Probes) {
			t.Errorf("the page does not have %q once for each probe", want)
		}
		if strings.Count(api, tt.api) != len(one.Probes) {
			t.Errorf("the API does not have %s once for each probe:\n%s", tt.api, api)
		}
	}
}

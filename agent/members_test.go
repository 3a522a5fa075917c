// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// One of two servers of a target breaks. Wherever somebody may look, the agent names the member
// that has failed and says what its list says: in the answers, the metrics, the API, on the pages
// and in the log. A target without lists beside it is as ever.
func TestMembersAreShown(t *testing.T) {
	t.Parallel()
	works, breaks := agenttest.NewApp(t), agenttest.NewApp(t)
	list := fmt.Sprintf(`[
        {name: web, httpGet: {port: %s}, periodSeconds: 0.1},
        {name: queue, httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 2}]`, works.Port, breaks.Port)
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: shop
    startupProbe: {tcpSocket: {port: %s}, periodSeconds: 0.1}
    readinessProbes: {require: any, probes: %s}
    livenessProbes: {probes: %[2]s}
%s`, works.Port, list, works.Target("single"))))
	a.Says(a.Health+"/ready/shop?verbose", http.StatusOK, ", 2 of 2, any\n")
	a.Says(a.Health+"/live/shop?verbose", http.StatusOK, ", 2 of 2, all\n")

	breaks.Broken.Store(true)
	const queue = "readiness/queue: http_status (2/2), 1 of 2, any"
	a.Says(a.Health+"/ready/shop?verbose", http.StatusOK, ", "+queue+"\n")
	a.Says(a.Health+"/live/shop", http.StatusServiceUnavailable, "[-]shop failed: liveness/queue: http_status (2/2), 1 of 2, all\n")
	a.Is(a.Web+"/api/v1/targets/shop", http.StatusOK, `"kind":"readiness","name":"queue","action":"httpGet"`)
	a.Is(a.Web+"/api/v1/targets/shop", http.StatusOK, `"combined":[{"kind":"readiness","members":2,"require":1,"succeeding":1,"failing":1,"result":"Success"},`+
		`{"kind":"liveness","members":2,"require":2,"succeeding":1,"failing":1,"result":"Failure"}]`)
	a.Is(a.Web+"/", http.StatusOK, "liveness/queue: http_status (2/2), 1 of 2, all")
	a.Is(a.Web+"/targets/shop", http.StatusOK, `<section id="readiness-queue"`)
	a.Logs("probe failed", "target=shop probe_type=Readiness probe=queue", "reason=http_status")
	a.Logs("result changed", "probe_type=Readiness probe=queue from=Success to=Failure", `combined="1 of 2, any"`)
	a.Logs("result changed", "probe_type=Liveness probe=queue from=Success to=Failure", `combined="1 of 2, all"`)
	for series, want := range map[string]string{
		`prober_probe_success{probe="queue",probe_type="Readiness",target="shop"}`: "0",
		`prober_probe_success{probe="web",probe_type="Readiness",target="shop"}`:   "1",
		`prober_probe_held{probe="queue",probe_type="Liveness",target="shop"}`:     "1",
		`prober_probe_success{probe_type="Startup",target="shop"}`:                 "1",
		`prober_target_ready{target="shop"}`:                                       "1",
		`prober_target_live{target="shop"}`:                                        "0",
	} {
		a.Eventually(series+" is "+want, func() error {
			if got := a.Metric(series); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}

	a.Says(a.Health+"/ready/single?verbose", http.StatusOK, "[+]single ok, since ")
	for _, path := range []string{"/metrics", "/metrics?name[]=prober_probe_success", "/api/v1/targets/single", "/targets/single", "/ready/single?verbose"} {
		_, body := testutil.Get(t, a.Web+path)
		for line := range strings.Lines(body) {
			if ours := !strings.HasPrefix(path, "/metrics") || strings.Contains(line, `target="single"`); ours && (strings.Contains(line, `probe="`) || strings.Contains(line, "combined") || strings.Contains(line, " of 2")) {
				t.Errorf("%s tells of lists: %s", path, line)
			}
		}
	}
	for line := range strings.Lines(a.Log.String()) {
		if strings.Contains(line, "target=single") && (strings.Contains(line, " probe=") || strings.Contains(line, "combined=")) {
			t.Errorf("the log tells of lists: %s", line)
		}
	}
}

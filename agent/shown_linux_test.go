// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// An agent that restarts a target says so wherever somebody may look: in the metrics, in a verbose
// answer, in the API and on the pages. Once the limit is spent, each of them says that too, and a
// target without a restart block is as ever.
func TestRestartsAreShown(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	pid := testutil.Write(t, strconv.Itoa(v.cmd.Process.Pid))
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    labels: {team: payments}
    instance: {source: process, pidFile: %s}
    startupProbe: {tcpSocket: {port: %[2]s}, periodSeconds: 0.1, failureThreshold: 1000}
    livenessProbe: {httpGet: {port: %[2]s}, periodSeconds: 0.1, timeoutSeconds: 0.2, failureThreshold: 3}
    restart:
      signal: {}
      backOff: {initialSeconds: 0.1}
      limit: {restarts: 1, seconds: 3600}
  - name: other
    readinessProbe: {tcpSocket: {port: %[2]s}, periodSeconds: 0.1}
`, pid, port)))
	a.Says(a.Health+"/started/app", 200, "ok")
	actions := func(result string) string {
		return a.Metric(fmt.Sprintf(`prober_target_restart_actions_total{result=%q,target="app",team="payments"}`, result))
	}
	for _, result := range []string{"succeeded", "failed", "stale", "dry_run"} {
		if got := actions(result); got != "0" {
			t.Errorf("%q acts with the result %s before the first, want 0", got, result)
		}
	}

	v.tell("lock")
	<-v.ended
	a.Says(a.Health+"/live/app?verbose", 200, "not running\n")
	a.Says(a.Web+"/api/v1/targets/app", 200, `"handler":"signal","result":"succeeded"`)
	a.Is(a.Web+"/api/v1/targets/app", 200, `"kind":"liveness","reason":"timeout","failures":3,"threshold":3`)
	a.Is(a.Web+"/", 200, "last restart ")
	if got := actions("succeeded"); got != "1" {
		t.Errorf("%q acts have succeeded, want 1", got)
	}

	next := startVictim(t, victimPlan{Ports: []string{port}})
	testutil.Rewrite(t, pid, strconv.Itoa(next.cmd.Process.Pid))
	a.Says(a.Health+"/started/app", 200, "ok")
	next.tell("lock")
	const plan = "(limit of 1 in 1 h)"
	a.Says(a.Health+"/live/app?verbose", 503, plan)
	a.Is(a.Health+"/live/app?verbose", 503, "[-]app failed: liveness: timeout (3/3), since ")
	a.Is(a.Web+"/", 200, plan)
	a.Is(a.Web+"/targets/app", 200, plan)
	a.Is(a.Web+"/api/v1/targets/app", 200, `"limit":{"restarts":1,"seconds":3600,"spent":true,"spent_until":`)
	for series, want := range map[string]string{"limited": "1", "back_off_seconds": "0"} {
		a.Eventually(series+" is "+want, func() error {
			if got := a.Metric("prober_target_restart_" + series + `{target="app",team="payments"}`); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	for _, path := range []string{"/api/v1/targets/other", "/targets/other", "/live/other?verbose"} {
		if _, body := testutil.Get(t, a.Web+path); strings.Contains(body, `"restart"`) {
			t.Errorf("%s tells of restarts: %s", path, body)
		}
	}
	if _, body := testutil.Get(t, a.Web+"/metrics"); strings.Count(body, `prober_target_restart_`) != 3*2+4+2 {
		t.Errorf("not only one target tells of restarts:\n%s", body)
	}
}

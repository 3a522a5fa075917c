// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// A reload turns on what is written to the pod, a refused one leaves it on, and another turns
// it off; without the key the agent says nothing of it. Outside a pod nothing can be written,
// which is said, and probes go on.
func TestReloadOfPodStatus(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const synced = "prober_exporter_kubernetes_synced"
	app := agenttest.NewApp(t)
	without := "targets:" + app.Target("app")
	with := "kubernetes: {events: true, podConditions: [{type: example.org/app-ready, targets: [app]}]}\n" + without
	file := testutil.Write(t, without)
	a := start(t, file, withRequests)
	a.Says(a.Health+"/ready/app", 200, "ok")
	reload := func(content string, want int) {
		t.Helper()
		testutil.Rewrite(t, file, content)
		if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != want {
			t.Fatalf("the reload answers %d %s, want %d", status, body, want)
		}
	}
	written := func() string {
		_, metrics := testutil.Get(t, a.Web+"/metrics")
		if n := strings.Count(metrics, "prober_exporter_kubernetes_writes_total{"); n != 0 && n != 5 {
			t.Errorf("%d series of writes, want 5 or none", n)
		}
		return a.Metric(synced)
	}
	if got := written(); got != "" || strings.Contains(a.Log.String(), "cannot watch the pod") {
		t.Errorf("without the key %s is %q; the log:\n%s", synced, got, a.Log)
	}
	reload(with, 200)
	a.Logs("level=warn", "cannot watch the pod", "KUBERNETES_SERVICE_HOST")
	testutil.Until(t, "the condition cannot be written", func() bool { return written() == "0" })
	reload(strings.Replace(with, "[app]", "[none]", 1), 500)
	a.Logs("configuration not loaded", "kubernetes.podConditions[0].targets[0]: there is no target")
	if got := written(); got != "0" {
		t.Errorf("after a refused reload %s is %q", synced, got)
	}
	a.Is(a.Health+"/ready/app", 200, "ok")
	if _, body := testutil.Get(t, a.Web+"/config"); !strings.Contains(body, "type: example.org/app-ready") {
		t.Errorf("the shown configuration is\n%s", body)
	}
	reload(without, 200)
	if got := written(); got != "" {
		t.Errorf("without the key again %s is %q", synced, got)
	}
}

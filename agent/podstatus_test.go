// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/podstatus"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/restart"
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

// An act that begins is an event of the pod, and one that has failed is another. An act that
// has succeeded, was dropped, or would have been done is none.
func TestActsAreEvents(t *testing.T) {
	cfg, _, err := config.Load("prober.yml", []byte("kubernetes: {events: true}\ntargets: []\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, log := apitest.NewServer(t), slog.New(slog.DiscardHandler)
	pod := kubernetes.NewFollower(apitest.NewPod(t, s).Env(), kubernetes.DefaultPace(), log)
	manager := prober.New(prober.Options{Pod: pod})
	defer manager.Close()
	w := podstatus.New(podstatus.Options{Prober: manager, Pod: pod, Logger: log})
	defer w.Close()
	w.Apply(cfg)
	s.Next(t, "get").Answer(200, `{"metadata":{"name":"web-0","uid":"u1","resourceVersion":"10"}}`)
	s.Next(t, "10").Open()
	for _, result := range append([]restart.Result{""}, restart.Succeeded, restart.Stale, restart.DryRun, restart.Failed) {
		tellPod(w, "shop", restart.Act{Kind: gate.Liveness, Handler: "signal", Result: result, Message: "it lives on"})
	}
	for _, want := range []string{
		`"message":"Target shop failed liveness probe, will be restarted by signal"`,
		`"message":"Target shop failed liveness probe, restart by signal failed: it lives on"`,
	} {
		c := s.Next(t, "event")
		if !strings.Contains(c.Body, want) {
			t.Errorf("created %s, want %s", c.Body, want)
		}
		c.Answer(201, "{}")
	}
	testutil.Until(t, "two events are written", func() bool { c, _ := w.Counts(); return c.EventsSucceeded == 2 })
	if c, _ := w.Counts(); c.EventsFailed+c.EventsDropped != 0 || len(s.Calls) != 0 {
		t.Errorf("%+v", c)
	}
}

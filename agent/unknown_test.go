// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// A target that is not in the file, or no longer in the file, is live and not ready. The log
// names the target, and a metric counts the requests for it.
func TestUnknownTarget(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("one")+app.Target("removed"))
	a := start(t, file, withRequests)
	testutil.Rewrite(t, file, "targets:"+app.Target("one"))
	if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != 200 {
		t.Fatalf("a reload answers %d %q", status, body)
	}
	for _, name := range []string{"removed", "nosuch"} {
		a.Is(a.Health+"/live/"+name, 200, "[?]"+name+" ")
		a.Is(a.Health+"/ready/"+name, 404, name+" unknown target")
		a.Is(a.Web+"/started/"+name, 404, name+" unknown target")
		a.Logs("level=warn", "somebody asks for the liveness of an unknown target", "target="+name)
	}
	a.Is(a.Web+"/live?target=nosuch", 200, "[?]nosuch unknown target")
	for endpoint, want := range map[string]string{"live": "3", "ready": "2", "started": "2"} {
		if got := a.Metric(`prober_exporter_unknown_target_requests_total{endpoint="` + endpoint + `"}`); got != want {
			t.Errorf("%s counted requests of %s for unknown targets, want %s", got, endpoint, want)
		}
	}
}

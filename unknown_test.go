// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"testing"
)

// A target that is not in the file, or no longer, is live and not ready; the log tells of
// it, and a metric counts who asks for it.
func TestUnknownTarget(t *testing.T) {
	app := newApp(t)
	file := write(t, "targets:"+app.target("one")+app.target("removed"))
	a := start(t, flags(file, "--web.enable-lifecycle")...)
	rewrite(t, file, "targets:"+app.target("one"))
	if status, body := do(t, http.MethodPost, a.web+"/-/reload"); status != 200 {
		t.Fatalf("a reload answers %d %q", status, body)
	}
	for _, name := range []string{"removed", "nosuch"} {
		a.is(a.health+"/live/"+name, 200, "[?]"+name+" ")
		a.is(a.health+"/ready/"+name, 404, name+" unknown target")
		a.is(a.web+"/started/"+name, 404, name+" unknown target")
		a.logs("level=warn", "liveness of an unknown target is asked for", "target="+name)
	}
	a.is(a.web+"/live?target=nosuch", 200, "[?]nosuch unknown target")
	for endpoint, want := range map[string]string{"live": "3", "ready": "2", "started": "2"} {
		if got := metric(t, a, `prober_exporter_unknown_target_requests_total{endpoint="`+endpoint+`"}`); got != want {
			t.Errorf("%s requests of %s for unknown targets are counted, want %s", got, endpoint, want)
		}
	}
}

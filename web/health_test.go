// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// mixed has a target in each state.
func mixed() *fake {
	return &fake{statuses: []prober.TargetStatus{well("app"), unready("db"), booting("slow"), dead("ill")}}
}

// Each health endpoint says what passes and what fails.
func TestHealth(t *testing.T) {
	allWell := &fake{statuses: []prober.TargetStatus{well("app"), well("db")}}
	tests := []struct {
		name   string
		prober *fake
		path   string
		status int
		body   string
	}{
		{"all started", allWell, "/started", 200, "ok\n"},
		{"all ready", allWell, "/ready", 200, "ok\n"},
		{"all live", allWell, "/live", 200, "ok\n"},
		{"no targets", &fake{}, "/ready", 200, "ok\n"},
		{"no targets, verbose", &fake{}, "/ready?verbose", 200, "ready check passed\n"},
		{"verbose", allWell, "/ready?verbose", 200, "[+]app ok\n[+]db ok\nready check passed\n"},
		{"verbose with a value", allWell, "/live?verbose=1", 200, "[+]app ok\n[+]db ok\nlive check passed\n"},

		{"one not started", mixed(), "/started", 503, "[-]slow failed: startup: connection_refused (2/30)\nstarted check failed\n"},
		{"two not ready", mixed(), "/ready", 503, "[-]db failed: readiness: http_status (3/3)\n[-]slow failed: startup: connection_refused (2/30)\nready check failed\n"},
		{"one not live", mixed(), "/live", 503, "[-]ill failed: liveness: timeout (3/3)\nlive check failed\n"},
		{"failing, verbose", mixed(), "/live?verbose", 503, "[+]app ok\n[+]db ok\n[+]slow ok\n[-]ill failed: liveness: timeout (3/3)\nlive check failed\n"},

		{"a target that is", mixed(), "/ready/app", 200, "ok\n"},
		{"a target that is, verbose", mixed(), "/ready/app?verbose", 200, "[+]app ok\nready check passed\n"},
		{"a target that is not", mixed(), "/ready/db", 503, "[-]db failed: readiness: http_status (3/3)\nready check failed\n"},
		{"a target not started", mixed(), "/started/slow", 503, "[-]slow failed: startup: connection_refused (2/30)\nstarted check failed\n"},
		{"a target not live", mixed(), "/live/ill", 503, "[-]ill failed: liveness: timeout (3/3)\nlive check failed\n"},
		{"unknown target: live", mixed(), "/live/nosuch", 200, "[?]nosuch unknown target: not probed\nok\n"},
		{"unknown target: live, verbose", mixed(), "/live/nosuch?verbose", 200, "[?]nosuch unknown target: not probed\nlive check passed\n"},
		{"unknown target: ready", mixed(), "/ready/nosuch", 404, "[-]nosuch unknown target\nready check failed\n"},
		{"unknown target: started", mixed(), "/started/nosuch", 404, "[-]nosuch unknown target\nstarted check failed\n"},
		{"unknown target, escaped", mixed(), "/ready/a%2Fb%0A%3Cx%3E%FF", 404, `[-]"a/b\n<x>\xff" unknown target` + "\nready check failed\n"},
		{"unknown target, too long", mixed(), "/started/" + strings.Repeat("x", 10_000), 404, "[-]" + strings.Repeat("x", 63) + "… unknown target\nstarted check failed\n"},

		{"target", mixed(), "/ready?target=app", 200, "ok\n"},
		{"targets", mixed(), "/ready?target=ill&target=app&target=ill&verbose", 200, "[+]ill ok\n[+]app ok\nready check passed\n"},
		{"target that fails", mixed(), "/ready?target=app&target=db", 503, "[-]db failed: readiness: http_status (3/3)\nready check failed\n"},
		{"exclude", mixed(), "/ready?exclude=db&exclude=slow", 200, "ok\n"},
		{"exclude, verbose", mixed(), "/ready?exclude=db&exclude=slow&verbose", 200, "[+]app ok\n[+]ill ok\nready check passed\n"},
		{"exclude not enough", mixed(), "/ready?exclude=db", 503, "[-]slow failed: startup: connection_refused (2/30)\nready check failed\n"},
		{"target and exclude", mixed(), "/ready?target=app&target=db&exclude=db&verbose", 200, "[+]app ok\nready check passed\n"},
		{"unknown names warn", allWell, "/ready?target=app&target=nosuch&exclude=nor%20this", 200, "[?]\"nor this\" unknown target\n[?]nosuch unknown target\nok\n"},
		{"unknown name warns, failing", mixed(), "/live?exclude=nosuch", 503, "[?]nosuch unknown target\n[-]ill failed: liveness: timeout (3/3)\nlive check failed\n"},
		{"only an unknown name", mixed(), "/live?target=nosuch", 200, "[?]nosuch unknown target\nok\n"},
		{"an empty name", mixed(), "/live?target=", 200, "[?]\"\" unknown target\nok\n"},

		{"no configuration: live", &fake{unloaded: true}, "/live", 200, "[?] no configuration\nok\n"},
		{"no configuration: any live", &fake{unloaded: true}, "/live/app?verbose", 200, "[?] no configuration\nlive check passed\n"},
		{"no configuration: ready", &fake{unloaded: true}, "/ready", 503, "[-]no configuration\nready check failed\n"},
		{"no configuration: any ready", &fake{unloaded: true}, "/ready/app", 503, "[-]no configuration\nready check failed\n"},
		{"no configuration: started", &fake{unloaded: true}, "/started", 503, "[-]no configuration\nstarted check failed\n"},
		{"no configuration: any started", &fake{unloaded: true}, "/started/app", 503, "[-]no configuration\nstarted check failed\n"},
		{"no configuration: agent ready", &fake{unloaded: true}, "/-/ready", 503, "[-]no configuration\nagent ready check failed\n"},
		{"no configuration: agent healthy", &fake{unloaded: true}, "/-/healthy", 200, "ok\n"},

		{"removed: live", &fake{removed: map[string]bool{"app": true}}, "/live/app", 200, "[?]app removed: not probed\nok\n"},
		{"removed: ready", &fake{removed: map[string]bool{"app": true}}, "/ready/app", 404, "[-]app unknown target\nready check failed\n"},
		{"removed: started", &fake{removed: map[string]bool{"app": true}}, "/started/app", 404, "[-]app unknown target\nstarted check failed\n"},
		{"removed: in a query", &fake{removed: map[string]bool{"app": true}}, "/live?target=app", 200, "[?]app unknown target\nok\n"},
		{"removed and back again", &fake{removed: map[string]bool{"ill": true}, statuses: mixed().statuses}, "/live/ill", 503, "[-]ill failed: liveness: timeout (3/3)\nlive check failed\n"},

		{"agent ready", mixed(), "/-/ready", 200, "ok\n"},
		{"agent ready, verbose", mixed(), "/-/ready?verbose", 200, "agent ready check passed\n"},
		{"agent healthy", mixed(), "/-/healthy", 200, "ok\n"},
		{"agent waits", &fake{waiting: []string{"app/liveness"}}, "/-/healthy", 200, "[?]app/liveness waits for the end of an attempt from before a reload\nok\n"},
		{"agent waits too long", &fake{waiting: []string{"app/liveness"}, overdue: []string{"app/liveness"}}, "/-/healthy", 503, "[?]app/liveness waits for the end of an attempt from before a reload\n[-]app failed: liveness: overdue\nagent healthy check failed\n"},
		{"agent unhealthy", &fake{overdue: []string{"app/liveness", "odd"}}, "/-/healthy", 503, "[-]app failed: liveness: overdue\n[-]odd failed: overdue\nagent healthy check failed\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newServer(t, options(test.prober)).HealthHandler()
			w := get(h, test.path)
			expect(t, w, test.status, test.body)
			for key, want := range map[string]string{
				"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			} {
				if got := w.Header().Get(key); got != want {
					t.Errorf("%s: %q, want %q", key, got, want)
				}
			}
			if w := do(h, http.MethodHead, test.path); w.Code != test.status {
				t.Errorf("HEAD: %d, want %d", w.Code, test.status)
			}
		})
	}
}

// While the agent stops, every live passes, the aggregate ready fails, and the answers for one
// target are its real state.
func TestStopping(t *testing.T) {
	stopping := mixed()
	stopping.stopping = true
	unloaded := &fake{unloaded: true, stopping: true}
	tests := []struct {
		prober *fake
		path   string
		status int
		body   string
	}{
		{stopping, "/live", 200, "[?] agent stopping\nok\n"},
		{stopping, "/live?verbose", 200, "[?] agent stopping\nlive check passed\n"},
		{stopping, "/live?target=ill", 200, "[?] agent stopping\nok\n"},
		{stopping, "/live/ill", 200, "[?] agent stopping\nok\n"},
		{stopping, "/live/nosuch", 200, "[?] agent stopping\nok\n"},
		{stopping, "/ready", 503, "[-]agent stopping\nready check failed\n"},
		{stopping, "/ready?target=app", 503, "[-]agent stopping\nready check failed\n"},
		{stopping, "/ready?exclude=db&exclude=slow", 503, "[-]agent stopping\nready check failed\n"},
		{stopping, "/ready/app", 200, "ok\n"},
		{stopping, "/ready/db", 503, "[-]db failed: readiness: http_status (3/3)\nready check failed\n"},
		{stopping, "/started", 503, "[-]slow failed: startup: connection_refused (2/30)\nstarted check failed\n"},
		{stopping, "/started/app", 200, "ok\n"},
		{stopping, "/-/ready", 503, "[-]agent stopping\nagent ready check failed\n"},
		{stopping, "/-/healthy", 200, "ok\n"},
		{unloaded, "/live/app", 200, "[?] no configuration\nok\n"},
		{unloaded, "/-/ready", 503, "[-]agent stopping\nagent ready check failed\n"},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			expect(t, get(newServer(t, options(test.prober)).HealthHandler(), test.path), test.status, test.body)
		})
	}
}

// The reason of a target that fails, for every way to fail.
func TestWhy(t *testing.T) {
	target := func(change func(*prober.TargetStatus)) prober.TargetStatus {
		t := well("app")
		t.Started, t.Ready, t.Live = false, false, false
		change(&t)
		return t
	}
	probes := func(ps ...prober.ProbeStatus) func(*prober.TargetStatus) {
		return func(t *prober.TargetStatus) { t.Probes = ps }
	}
	initial := probe(gate.Readiness, gate.Failure)
	initial.Last, initial.Gated = gate.Success, true
	recovering := probe(gate.Readiness, gate.Failure)
	recovering.Last, recovering.Run, recovering.SuccessThreshold = gate.Success, 1, 2
	unset := failing(gate.Readiness, action.DNS, 1)
	unset.FailureThreshold = 0

	startedBut := func(p prober.ProbeStatus) func(*prober.TargetStatus) {
		return func(t *prober.TargetStatus) { t.Started, t.Probes = true, []prober.ProbeStatus{p} }
	}
	tests := []struct {
		name, path string
		target     prober.TargetStatus
		want       string
	}{
		{"not running", "/started", target(func(t *prober.TargetStatus) { t.Running = false }), "not running"},
		{"not running, so not ready", "/ready", target(func(t *prober.TargetStatus) { t.Running = false }), "not running"},
		{"startup pending", "/ready", target(probes(failing(gate.Startup, action.ExitCode, 1), initial)), "startup: exit_code (1/3)"},
		{"startup without a probe", "/started", target(probes(initial)), "startup: not started"},
		{"no attempt yet", "/ready", target(startedBut(initial)), "readiness: no result yet (0/3)"},
		{"recovering", "/ready", target(startedBut(recovering)), "readiness: below success threshold (0/3)"},
		{"below threshold", "/ready", target(startedBut(failing(gate.Readiness, action.DNS, 2))), "readiness: dns (2/3)"},
		{"beyond threshold", "/ready", target(startedBut(failing(gate.Readiness, action.DNS, 1<<63))), "readiness: dns (3/3)"},
		{"no threshold", "/ready", target(startedBut(unset)), "readiness: dns (1/1)"},
		{"liveness", "/live", target(probes(probe(gate.Startup, gate.Success), failing(gate.Liveness, action.TLS, 3))), "liveness: tls (3/3)"},
		{"startup kills too", "/live", target(probes(failing(gate.Startup, action.Signal, 3), probe(gate.Liveness, gate.Success))), "startup: signal (3/3)"},
		{"both: startup", "/live", target(probes(failing(gate.Startup, action.Signal, 3), failing(gate.Liveness, action.TLS, 3))), "startup: signal (3/3)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newServer(t, options(&fake{statuses: []prober.TargetStatus{test.target}})).HealthHandler()
			expect(t, get(h, test.path), 503, fmt.Sprintf("[-]app failed: %s\n%s check failed\n", test.want, test.path[1:]))
			expect(t, get(h, test.path+"/app"), 503, fmt.Sprintf("[-]app failed: %s\n%s check failed\n", test.want, test.path[1:]))
		})
	}
}

// The aggregates look at every target only when there is something to list.
func TestConstantTime(t *testing.T) {
	f := &fake{statuses: many(3, well)}
	h := newServer(t, options(f)).HealthHandler()
	for path, want := range map[string]int{
		"/ready": 0, "/live": 0, "/started": 0, "/ready?target=t1": 0, "/ready?exclude=t1": 0, "/ready/t1": 0, "/-/ready": 0, "/-/healthy": 0,
		"/ready?verbose": 1, "/ready?exclude=t1&verbose": 1, "/ready?target=t1&verbose": 0,
	} {
		f.statusCalls = 0
		if get(h, path); f.statusCalls != want {
			t.Errorf("%s: Status was called %d times, want %d", path, f.statusCalls, want)
		}
	}
}

// A verbose answer says since when a target passes or fails, and which targets pass only
// because they do not run. Other answers do not.
func TestVerboseSince(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 999_999_999, time.FixedZone("", 3600))
	changed := prober.Changed{Started: at, Ready: at.Add(time.Minute), Live: at.Add(time.Hour)}
	app, db, down := well("app"), unready("db"), well("down")
	app.Changed, db.Changed, down.Changed = changed, changed, changed
	down.Running, down.Started, down.Ready = false, false, false
	h := newServer(t, options(&fake{statuses: []prober.TargetStatus{app, db, down}})).HealthHandler()
	for path, want := range map[string]string{
		"/live?verbose": "[+]app ok, since 2026-01-02T04:04:05Z\n[+]db ok, since 2026-01-02T04:04:05Z\n" +
			"[+]down ok, since 2026-01-02T04:04:05Z, not running\nlive check passed\n",
		"/live/down?verbose":   "[+]down ok, since 2026-01-02T04:04:05Z, not running\nlive check passed\n",
		"/started/app?verbose": "[+]app ok, since 2026-01-02T03:04:05Z\nstarted check passed\n",
		"/ready?verbose": "[+]app ok, since 2026-01-02T03:05:05Z\n[-]db failed: readiness: http_status (3/3), since 2026-01-02T03:05:05Z\n" +
			"[-]down failed: not running, since 2026-01-02T03:05:05Z\nready check failed\n",
		"/ready/db":  "[-]db failed: readiness: http_status (3/3)\nready check failed\n",
		"/live/down": "ok\n",
	} {
		if got := get(h, path).Body.String(); got != want {
			t.Errorf("%s:\n%swant:\n%s", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"/live?verbose&target=down": `{"check":"live","ok":true,"targets":[{"name":"down","ok":true,"reason":"not running","since":"2026-01-02T04:04:05Z"}]}`,
		"/ready/db":                 `{"check":"ready","ok":false,"targets":[{"name":"db","ok":false,"kind":"readiness","reason":"http_status","failures":3,"threshold":3}]}`,
	} {
		if got := get(h, path, "Accept: application/json").Body.String(); got != want+"\n" {
			t.Errorf("%s:\n%swant:\n%s", path, got, want)
		}
	}
}

// Only GET and HEAD are answered.
func TestMethods(t *testing.T) {
	h := newServer(t, options(mixed())).HealthHandler()
	for _, path := range []string{"/started", "/ready", "/live", "/started/app", "/ready/app", "/live/app", "/-/healthy", "/-/ready"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"} {
			w := do(h, method, path)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

// A health listener has nothing but the health endpoints.
func TestHealthOnly(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle, opts.EnablePprof, opts.RoutePrefix = true, true, "/prefix"
	h := newServer(t, opts).HealthHandler()
	for _, path := range []string{
		"/", "/metrics", "/config", "/api/v1/targets", "/debug/pprof/", "/prefix/metrics", "/live/", "/live/app/", "/live/a/b", "/-/", "/-/reload",
	} {
		expect(t, get(h, path), http.StatusNotFound, "404 page not found\n")
	}
	if w := do(h, http.MethodPost, "/-/reload"); w.Code != http.StatusNotFound {
		t.Errorf("POST /-/reload: %d", w.Code)
	}
	for _, path := range []string{"/live/app", "/prefix/live/app"} {
		expect(t, get(h, path), http.StatusOK, "ok\n")
	}
}

// If a reload brings a target back while somebody asks for it, the answer does not call the
// target unknown.
func TestBackAgain(t *testing.T) {
	f := &fake{}
	f.onRemoved = func() { f.statuses = []prober.TargetStatus{well("app")} }
	expect(t, get(newServer(t, options(f)).HealthHandler(), "/live/app"), 200, "ok\n")
}

func BenchmarkReady(b *testing.B) {
	for _, n := range []int{3, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newServer(b, options(constant{&fake{}, prober.Summary{Loaded: true, Targets: n, Started: n, Ready: n, Live: n}})).HealthHandler()
			for b.Loop() {
				if w := get(h, "/ready"); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// constant has a summary in constant time, like the real prober.
type constant struct {
	*fake
	summary prober.Summary
}

func (c constant) Summary() prober.Summary { return c.summary }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/restart"
)

var _ Restarter = (*restart.Restarter)(nil)

// restarts is a Restarter with fixed answers, by target.
type restarts map[string]restart.TargetStatus

func (r restarts) Target(name string) (restart.TargetStatus, bool) {
	t, ok := r[name]
	return t, ok
}

// waiting is a target whose third back-off has 35 s left.
func waiting() restart.TargetStatus {
	return restart.TargetStatus{
		Handler: "signal", Wanted: true, Left: 35 * time.Second,
		BackOff: 40 * time.Second, BackOffLeft: 35 * time.Second, BackOffs: 3,
	}
}

// A verbose answer about liveness says what follows from a verdict. Other answers do not.
func TestVerboseRestart(t *testing.T) {
	limited := func(s *restart.TargetStatus) {
		s.Limit, s.Limited, s.Left = config.Limit{Restarts: 5, Window: time.Hour}, true, 23*time.Minute
	}
	for _, test := range []struct {
		change func(*restart.TargetStatus)
		want   string
	}{
		{func(*restart.TargetStatus) {}, ", restart in 35 s (back-off, third)"},
		{func(s *restart.TargetStatus) { s.Left = 2400 * time.Millisecond }, ", restart in 2.4 s (back-off, third)"},
		{func(s *restart.TargetStatus) { s.BackOffs = 0 }, ", restart in 35 s (back-off after the start of the agent)"},
		{func(s *restart.TargetStatus) { s.DryRun = true }, ", restart in 35 s (back-off, third, dry run)"},
		{func(s *restart.TargetStatus) { s.Left = 0 }, ", restart due"},
		{func(s *restart.TargetStatus) { s.Left, s.DryRun = 0, true }, ", restart due (dry run)"},
		{limited, ", restart in 23 min (limit of 5 in 1 h)"},
		{func(s *restart.TargetStatus) { limited(s); s.BackOffLeft = s.Left }, ", restart in 23 min (back-off, third)"},
		{func(s *restart.TargetStatus) { s.Current = &restart.Act{Duration: 12 * time.Second} }, ", restart under way for 12 s"},
		{func(s *restart.TargetStatus) { s.Wanted = false }, ""},
	} {
		status := waiting()
		test.change(&status)
		opts := options(mixed())
		opts.Restarter = restarts{"ill": status}
		h := newServer(t, opts).HealthHandler()
		expect(t, get(h, "/live/ill?verbose"), 503, "[-]ill failed: liveness: timeout (3/3)"+test.want+"\nlive check failed\n")
		expect(t, get(h, "/live?verbose&target=app&target=ill"), 503, "[+]app ok\n[-]ill failed: liveness: timeout (3/3)"+test.want+"\nlive check failed\n")
		for path, want := range map[string]string{
			"/live/ill":          "[-]ill failed: liveness: timeout (3/3)\nlive check failed\n",
			"/live?target=ill":   "[-]ill failed: liveness: timeout (3/3)\nlive check failed\n",
			"/ready/ill?verbose": "[+]ill ok\nready check passed\n",
		} {
			if got := get(h, path).Body.String(); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		words := strings.TrimPrefix(test.want, ", restart ")
		if words != "" {
			words = fmt.Sprintf(`,"restart":%q`, words)
		}
		want := `{"check":"live","ok":false,"targets":[{"name":"ill","ok":false,"kind":"liveness","reason":"timeout","failures":3,"threshold":3` + words + "}]}\n"
		if got := get(h, "/live/ill?verbose", "Accept: application/json").Body.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// While its act is under way, a target that does not run passes, and the answer says why it
// does not run.
func TestVerboseRestartOfTheDown(t *testing.T) {
	down := well("app")
	down.Running, down.Started, down.Ready = false, false, false
	opts := options(&fake{statuses: []prober.TargetStatus{down}})
	opts.Restarter = restarts{"app": {Current: &restart.Act{Duration: 90 * time.Second}}}
	expect(t, get(newServer(t, opts).HealthHandler(), "/live?verbose"), 200,
		"[+]app ok, not running, restart under way for 1 min 30 s\nlive check passed\n")
}

// acting is a Restarter of the target app, with something in every field.
func acting(now time.Time) restarts {
	// Not UTC, the zone of the answers.
	now = now.In(time.FixedZone("", 3600))
	act := restart.Act{
		Began: now.Add(-5 * time.Minute), Duration: 1500 * time.Millisecond, Instance: "17:99", Kind: gate.Liveness, Reason: action.HTTPStatus,
		Output: "HTTP probe failed with statuscode: 500\n<b>", Failures: 7, Threshold: 3, Handler: "signal", Result: restart.Failed, Message: "operation not permitted",
	}
	later, current := act, act
	later.Began, later.Result, later.Message = now.Add(-50*time.Second), restart.Succeeded, "SIGTERM, ended after 1.5 s"
	current.Began, current.Duration, current.Result, current.Message = now.Add(-time.Second), time.Second, "", ""
	current.Kind, current.Reason, current.Output, current.Failures = gate.Startup, action.ExitCode, "", 3
	return restarts{"app": {
		Name: "app", Handler: "signal", DryRun: true, Current: &current, Wanted: true,
		NotBefore: now.Add(35 * time.Second), Left: 35 * time.Second,
		BackOff: 40 * time.Second, BackOffLeft: 30 * time.Second, BackOffs: 3,
		Limit: config.Limit{Restarts: 5, Window: time.Hour}, Limited: true, LimitedUntil: now.Add(35 * time.Second),
		Acts: []restart.Act{act, later}, Counts: restart.Counts{Succeeded: 4, Failed: 3, Stale: 2, DryRun: 1},
	}}
}

// The API reports how the agent restarts a target and what it has done. What is unknown or not
// configured is left out.
func TestRestartAPI(t *testing.T) {
	opts := options(&fake{statuses: []prober.TargetStatus{{Name: "app", Source: "process"}}})
	opts.Restarter = acting(time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC))
	h := newServer(t, opts).Handler()
	golden(t, "restart.json", get(h, "/api/v1/targets/app"))
	if all, one := get(h, "/api/v1/targets").Body.String(), get(h, "/api/v1/targets/app").Body.String(); all != `{"targets":[`+one+"]}\n" {
		t.Errorf("the list has\n%s\nthe target is\n%s", all, one)
	}
	opts.Restarter = restarts{"app": {Handler: "exec"}}
	const want = `"restart":{"handler":"exec","dry_run":false,"wanted":false,"acts":[],"counts":{"dry_run":0,"failed":0,"stale":0,"succeeded":0}},`
	if got := get(newServer(t, opts).Handler(), "/api/v1/targets/app").Body.String(); !strings.Contains(got, want) {
		t.Errorf("no %s in %s", want, got)
	}
}

// The list says what follows from a verdict and how the last act ended, the page of a target has
// all acts.
func TestPageRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // since midnight
		f := &fake{statuses: []prober.TargetStatus{dead("app"), dead("held"), well("idle"), well("spent")}}
		f.statuses[1].Probes[2].Held = true
		all := acting(time.Now())
		all["held"] = waiting()
		all["idle"] = restart.TargetStatus{Handler: "docker", BackOff: 10 * time.Second, BackOffLeft: 8200 * time.Millisecond}
		all["spent"] = restart.TargetStatus{Handler: "exec", Limited: true, Limit: config.Limit{Restarts: 2, Window: time.Minute}, LimitedUntil: time.Now().Add(9 * time.Second)}
		opts := options(f)
		opts.Restarter = all
		h := newServer(t, opts).Handler()
		list := page(t, h, "/", 200)
		lines := map[string]string{}
		for _, m := range aTarget.FindAllStringSubmatch(list, -1) {
			lines[m[1]] = text(m[0])
		}
		for name, want := range map[string]string{
			"app":  "app ✗ not live liveness: timeout (3/3), restart under way for 1 s ✓ started",
			"held": "held ✗ held liveness: timeout (3/3), restart in 35 s (back-off, third) ✓ started",
			"idle": "idle ✓ ready ✓ started",
		} {
			if !strings.HasPrefix(lines[name], want) {
				t.Errorf("%s, want %s", lines[name], want)
			}
		}
		if want := "0 restarts last restart 48 s ago: succeeded"; !strings.HasSuffix(lines["app"], want) || strings.Count(list, "last restart") != 1 {
			t.Errorf("%s, want %s", lines["app"], want)
		}
		for path, want := range map[string]string{
			"/targets/app": "restart signal, dry run … restart under way for 1 s back-off 40 s, third; ends in 30 s limit 5 in 1 h " +
				"limit spent until 12:00:35, in 35 s succeeded 4 failed 3 stale 2 dry run 1 Last acts, newest first at result took reason instance message and output " +
				"11:59:59 under way 1.0 s startup: exit_code (3/3) 17:99 " +
				"11:59:10 succeeded 1.5 s liveness: http_status (3/3) 17:99 SIGTERM, ended after 1.5 s HTTP probe failed with statuscode: 500 <b> " +
				"11:55:00 failed 1.5 s liveness: http_status (3/3) 17:99 operation not permitted HTTP probe failed with statuscode: 500 <b> Configuration",
			"/targets/held":  "restart signal ! restart in 35 s (back-off, third) back-off 40 s, third; ends in 35 s limit none succeeded 0 failed 0 stale 0 dry run 0 Configuration",
			"/targets/idle":  "restart docker ✓ no restart due back-off 10 s, after the start of the agent; ends in 8.2 s limit none succeeded 0",
			"/targets/spent": "restart exec ! limit spent back-off none limit 2 in 1 min limit spent until 12:00:09, in 9.0 s succeeded 0",
		} {
			if got := text(page(t, h, path, 200)); !strings.Contains(got, want) {
				t.Errorf("%s: no\n%s in\n%s", path, want, got)
			}
		}
		limited := all["spent"]
		limited.Wanted, limited.Left = true, 9*time.Second
		all["spent"] = limited
		if got := text(page(t, h, "/targets/spent", 200)); !strings.Contains(got, "✗ restart in 9.0 s (limit of 2 in 1 min)") {
			t.Error(got)
		}
	})
}

// What an act says is shown as text, whatever it contains.
func TestPageHostileAct(t *testing.T) {
	const hostile = "<script>alert(1)</script>\x1b\u202e"
	opts := options(&fake{statuses: []prober.TargetStatus{dead("app")}})
	opts.Restarter = restarts{"app": {Acts: []restart.Act{{Instance: hostile, Output: hostile, Message: hostile}}}}
	body := page(t, newServer(t, opts).Handler(), "/targets/app", 200)
	if n := strings.Count(body, "<script"); n != 1 {
		t.Errorf("%d scripts, want the agent's own", n)
	}
	if n := strings.Count(html.UnescapeString(body), `<script>alert(1)</script>\x1b\u202e`); n != 3 {
		t.Errorf("the texts are shown %d times, want 3", n)
	}
}

// A target without a restart block says not a byte more, whether other targets have such a block
// or the agent restarts nobody.
func TestWithoutRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paths := []string{
			"/", "/targets/ill", "/targets/nosuch", "/api/v1/targets", "/api/v1/targets/ill", "/config", "/live", "/live?verbose", "/live/ill?verbose", "/ready?verbose",
		}
		answers := func(r Restarter, path string) string {
			opts := options(mixed())
			opts.Restarter = r
			h := newServer(t, opts).Handler()
			return get(h, path).Body.String() + get(h, path, "Accept: application/json").Body.String()
		}
		for _, path := range paths {
			want := answers(nil, path)
			if got := answers(restarts{}, path); got != want {
				t.Errorf("%s: an agent that restarts nobody says\n%s, want\n%s", path, got, want)
			}
			if got := answers(restarts{"other": acting(time.Now())["app"]}, path); got != want {
				t.Errorf("%s: beside a target that is restarted:\n%s, want\n%s", path, got, want)
			}
			if strings.Contains(want, `"restart"`) || strings.Contains(want, "last restart") || strings.Contains(want, "restart in") {
				t.Errorf("%s: %s", path, want)
			}
		}
	})
}

// The plain endpoints, which kubelets ask, do not ask for restarts.
func TestPlainAnswersDoNotAskForRestarts(t *testing.T) {
	opts := options(mixed())
	opts.Restarter = asking{t}
	h := newServer(t, opts).HealthHandler()
	for _, path := range []string{"/live", "/live/ill", "/ready?verbose", "/started?verbose", "/ready", "/-/healthy?verbose"} {
		if w := get(h, path); w.Code == http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// asking is a Restarter that nobody may ask.
type asking struct{ t *testing.T }

func (a asking) Target(string) (restart.TargetStatus, bool) {
	a.t.Error("somebody asked")
	return restart.TargetStatus{}, false
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/restart"
)

// member returns a probe as a member of a list.
func member(p prober.ProbeStatus, name string) prober.ProbeStatus {
	p.Name = name
	return p
}

// list puts probes in the place of the target's probe of their kind, and derives what they say
// together.
func list(t *prober.TargetStatus, require int, members ...prober.ProbeStatus) {
	c := prober.CombinedStatus{Kind: members[0].Kind, Members: len(members), Require: require, Result: gate.Unknown}
	for _, p := range members {
		switch p.Result {
		case gate.Success:
			c.Succeeding++
		case gate.Failure:
			c.Failing++
		case gate.Unknown:
		}
	}
	switch {
	case c.Succeeding >= require:
		c.Result = gate.Success
	case c.Members-c.Failing < require:
		c.Result = gate.Failure
	}
	var probes []prober.ProbeStatus
	for _, p := range t.Probes {
		switch {
		case p.Kind != c.Kind:
			probes = append(probes, p)
		case p.Name == "":
			probes = append(probes, members...)
		}
	}
	t.Probes, t.Combined = probes, append(t.Combined, c)
}

// lists returns targets with lists in every state.
func lists() []prober.TargetStatus {
	web, grpc := member(probe(gate.Readiness, gate.Success), "http"), member(failing(gate.Readiness, action.Timeout, 5), "grpc")
	one := well("any")
	list(&one, 1, web, grpc)

	all := well("all")
	all.Ready = false
	list(&all, 2, web, grpc)

	both := well("both") // enough have failed for a restart, and a startup probe was not needed
	late := member(failing(gate.Startup, action.ConnectionRefused, 30), "late")
	late.Held = true
	list(&both, 1, member(probe(gate.Startup, gate.Success), "soon"), late)
	dead := member(failing(gate.Liveness, action.HTTPStatus, 3), "queue")
	dead.Held = true
	both.Live = false
	list(&both, 2, member(probe(gate.Liveness, gate.Success), "web"), dead, member(failing(gate.Liveness, action.Timeout, 7), "db"))

	boot := booting("boot")
	waits := member(probe(gate.Startup, gate.Unknown), "cache")
	list(&boot, 2, waits, member(boot.Probes[0], "db"), member(probe(gate.Startup, gate.Success), "web"))

	stuck := booting("stuck") // the startup probes have failed
	stuck.Live = false
	gone := member(failing(gate.Startup, action.ConnectionRefused, 30), "db")
	gone.FailureThreshold, gone.Held = 30, true
	list(&stuck, 2, member(probe(gate.Startup, gate.Success), "web"), gone)

	fine := well("fine")
	list(&fine, 2, web, member(probe(gate.Readiness, gate.Success), "grpc"))
	return []prober.TargetStatus{one, all, both, boot, stuck, fine, well("single")}
}

// The answers of the health endpoints name the members of lists, and say how many succeed and how
// many must. A single probe is told as ever.
func TestMembersVerbose(t *testing.T) {
	f := &fake{statuses: lists(), overdue: []string{"any/readiness/grpc", "single/readiness"}}
	h := newServer(t, options(f)).Handler()
	var got strings.Builder
	for _, path := range []string{"/started?verbose", "/ready?verbose", "/live?verbose", "/ready", "/live/both", "/-/healthy"} {
		fmt.Fprintf(&got, "GET %s\n%s\n", path, get(h, path).Body)
	}
	testutil.Golden(t, filepath.Join("testdata", "members.txt"), []byte(got.String()))
	for path, want := range map[string]string{
		"/ready/all": `{"check":"ready","ok":false,"targets":[{"name":"all","ok":false,"kind":"readiness","probe":"grpc","reason":"timeout","failures":3,"threshold":3,` +
			`"combined":{"kind":"readiness","members":2,"require":2,"succeeding":1,"failing":1,"result":"Failure"}}]}`,
		"/ready/any?verbose": `{"check":"ready","ok":true,"targets":[{"name":"any","ok":true,"kind":"readiness","probe":"grpc","reason":"timeout","failures":3,"threshold":3,` +
			`"combined":{"kind":"readiness","members":2,"require":1,"succeeding":1,"failing":1,"result":"Success"}}]}`,
		"/-/healthy": `{"check":"agent healthy","ok":false,"targets":[{"name":"any","ok":false,"kind":"readiness","probe":"grpc","reason":"overdue"},` +
			`{"name":"single","ok":false,"kind":"readiness","reason":"overdue"}]}`,
	} {
		if got := get(h, path, "Accept: application/json").Body.String(); got != want+"\n" {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}

// A target that does not run is live, and nothing is said of its lists.
func TestMembersNotRunning(t *testing.T) {
	down := lists()[0]
	down.Running = false
	h := newServer(t, options(&fake{statuses: []prober.TargetStatus{down}})).Handler()
	expect(t, get(h, "/live?verbose"), http.StatusOK, "[+]any ok, not running\nlive check passed\n")
}

// The API names the members of lists and has what each list says; without lists it has neither.
func TestMembersAPI(t *testing.T) {
	all := lists()
	h := newServer(t, options(&fake{statuses: all})).Handler()
	golden(t, "members.json", get(h, "/api/v1/targets/both"))
	if body := get(h, "/api/v1/targets/single").Body.String(); strings.Contains(body, "combined") || strings.Count(body, `"name"`) != 1 {
		t.Errorf("a target without lists has %s", body)
	}
}

// The page and the API name the member whose failure was the reason of a restart. Without a list
// there is no name.
func TestMembersRestart(t *testing.T) {
	act := restart.Act{Handler: "exec", Result: restart.Succeeded, Kind: gate.Liveness, Probe: "queue", Reason: action.HTTPStatus, Failures: 3, Threshold: 3}
	single := act
	single.Probe = ""
	opts := options(&fake{statuses: lists()})
	opts.Restarter = restarts{"both": {Handler: "exec", Wanted: true, Left: 35 * time.Second, BackOffs: 1, Acts: []restart.Act{act}}, "single": {Handler: "exec", Acts: []restart.Act{single}}}
	h := newServer(t, opts).Handler()
	for path, want := range map[string]string{
		"/api/v1/targets/both":   `"kind":"liveness","probe":"queue","reason":"http_status","failures":3,"threshold":3`,
		"/targets/both":          "<td>liveness/queue: http_status (3/3)<td",
		"/live/both?verbose":     "[-]both failed: liveness/queue: http_status (3/3), 1 of 3, 2 required, restart in 35 s (back-off, first)\n",
		"/api/v1/targets/single": `"kind":"liveness","reason":"http_status","failures":3,"threshold":3`,
		"/targets/single":        "<td>liveness: http_status (3/3)<td",
	} {
		if body := get(h, path).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: no %s in\n%s", path, want, body)
		}
	}
}

// Both pages show the members of a list below what the list says. These are the words of each
// target, and the HTML of one.
func TestMembersPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // since midnight
		f := &fake{statuses: lists()}
		grpc := &f.statuses[0].Probes[2]
		last := prober.Attempt{Start: time.Now().Add(-10 * time.Second), Last: time.Now().Add(-10 * time.Second), Count: 1, Duration: time.Second, Outcome: prober.Failed, Reason: action.Timeout, Output: "no answer"}
		grpc.Attempts, grpc.LastFailures, grpc.FirstFailure = []prober.Attempt{last}, []prober.Attempt{last}, &last
		grpc.Marks = []prober.Mark{{Start: last.Start, Duration: time.Second, Outcome: prober.Failed, Reason: action.Timeout}}
		late := &f.statuses[2].Probes[1]
		late.LastFailures = []prober.Attempt{last}
		h := newServer(t, options(f)).Handler()

		body := page(t, h, "/", 200)
		if got, want := listed(body), "both stuck all boot any fine single"; got != want {
			t.Errorf("listed %s, want %s", got, want)
		}
		shown := map[string]string{}
		for _, m := range aTarget.FindAllStringSubmatch(body, -1) {
			shown[m[1]] = text(m[0])
		}
		for name, want := range map[string][]string{
			"any": {
				"any ! ready, unsteady readiness/grpc: timeout (3/3), 1 of 2, any ✓ started ✓ ready ✓ live startup ✓ success",
				"readiness ! 1 of 2, any http ✓ success grpc ✗ 3/3 failures 5 in a row 11:59:50 failed: timeout, 1.0 s 1.0 s liveness ✓ success static",
				"readiness/grpc failed: timeout , 10 s ago ( 11:59:50 ), after 1.0 s 5 failures in a row since 11:59:50 (10 s) no answer",
			},
			"all": {"all ✗ not ready readiness/grpc: timeout (3/3), 1 of 2, all ✓ started ✗ not ready", "readiness ✗ 1 of 2, all http ✓ success grpc ✗ 3/3 failures 5 in a row liveness"},
			"both": {
				"both ✗ held liveness/queue: http_status (3/3), 1 of 3, 2 required, waits for a restart",
				"startup ✓ 1 of 2, any soon ✓ success late ○ 3/3 failures not needed failed 10 s ago: timeout no answer readiness",
				"liveness ✗ 1 of 3, 2 required web ✓ success queue ✗ 3/3 failures, held waits for a restart db ✗ 3/3 failures 7 in a row static",
			},
			"boot":  {"boot … starting startup/db: connection_refused (2/30), 1 of 3, 2 required", "startup ! 1 of 3, 2 required cache … no result yet db ! 2/30 failures web ✓ success readiness"},
			"stuck": {"stuck ✗ held startup/db: connection_refused (30/30), 1 of 2, all, waits for a restart"},
			"fine":  {"fine ✓ ready ✓ started ✓ ready ✓ live startup ✓ success readiness ✓ 2 of 2, all http ✓ success grpc ✓ success liveness"},
		} {
			for _, words := range want {
				if !strings.Contains(shown[name], words) {
					t.Errorf("no %q in %s", words, shown[name])
				}
			}
		}
		one := regexp.MustCompile(`(?s)<li id="t-any".*?\n</li>`).FindString(body)
		whole := page(t, h, "/targets/any", 200)
		_, cards, _ := strings.Cut(whole, "</dl>\n")
		cards, _, _ = strings.Cut(cards, `<section class="card"><h2>Configuration`)
		testutil.Golden(t, filepath.Join("testdata", "members.html"), []byte(one+"\n\n"+cards))
		if ids := regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(whole, -1); len(ids) != len(unique(ids)) {
			t.Errorf("two elements have one ID: %q", ids)
		}
	})
}

func unique(found [][]string) map[string]bool {
	out := map[string]bool{}
	for _, m := range found {
		out[m[1]] = true
	}
	return out
}

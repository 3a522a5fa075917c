// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"compress/gzip"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	nethtml "golang.org/x/net/html"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// showing returns a prober whose targets are in every state, from the best to the worst.
func showing() *fake {
	down := well("down")
	down.Running, down.Instance.Phase = false, gate.Terminated
	held := dead("held")
	held.Labels = []config.Label{{Name: "team", Value: "big spenders"}, {Name: "zone", Value: "a"}}
	held.Probes[2].Held = true
	unsteady := well("unsteady")
	unsteady.Labels = []config.Label{{Name: "team", Value: "payments"}, {Name: "zone", Value: "a"}}
	unsteady.Probes[2].ConsecutiveFailures, unsteady.Probes[2].Reason = 1, action.Timeout
	return &fake{statuses: []prober.TargetStatus{well("app"), unsteady, booting("booting"), down, unready("unready"), dead("dead"), held}}
}

// page gets a page and checks the rules for every page.
func page(t *testing.T, h http.Handler, path string, status int) string {
	t.Helper()
	w := get(h, path)
	if w.Code != status {
		t.Fatalf("%s: %d, want %d: %s", path, w.Code, status, w.Body)
	}
	if got := w.Header().Get("Content-Security-Policy"); got != pagePolicy {
		t.Errorf("%s: policy %q", path, got)
	}
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("%s: sniffing: %q", path, got)
	}
	body := w.Body.String()
	for z := nethtml.NewTokenizer(strings.NewReader(body)); z.Next() != nethtml.ErrorToken; {
		token := z.Token()
		for _, a := range token.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") || a.Key == "href" && strings.Contains(a.Val, ":") {
				t.Errorf("%s: %s", path, token)
			}
		}
		if token.Type == nethtml.StartTagToken && (token.Data == "style" || token.Data == "script" && token.Attr[0].Key != "src") {
			t.Errorf("%s: inline %s", path, token)
		}
	}
	return body
}

// text returns what a reader sees of a piece of HTML, on one line.
func text(piece string) string {
	words := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(piece, " ")
	return strings.Join(strings.Fields(html.UnescapeString(words)), " ")
}

var aTarget = regexp.MustCompile(`(?s)<li id="t-([^"]*)".*?\n</li>`)

// listed returns the names of the targets on a page, in order.
func listed(body string) string {
	var names []string
	for _, m := range aTarget.FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}

// The worst targets come first, and the filter leaves the targets with the chosen states and
// words.
func TestPageFilter(t *testing.T) {
	h := newServer(t, options(showing())).Handler()
	for query, want := range map[string]string{
		"":                                "held dead unready down booting unsteady app",
		"?state=failing":                  "held dead unready unsteady",
		"?state=held":                     "held",
		"?state=starting":                 "booting",
		"?state=down":                     "down",
		"?state=ready":                    "unsteady app",
		"?state=nonsense":                 "held dead unready down booting unsteady app",
		"?q=AD":                           "dead unready unsteady",
		"?q=team":                         "held unsteady",
		"?q=team%3Dpayments":              "unsteady",
		"?q=team%3Dpay":                   "",
		"?q=pay":                          "unsteady",
		"?q=team%3D%22big+spenders%22":    "held",
		"?q=zone%3Da+un":                  "unsteady",
		"?q=zone%3Da&state=held":          "held",
		"?q=%22":                          "held dead unready down booting unsteady app",
		"?q=" + strings.Repeat("x", 9999): "",
		"?page=7":                         "held dead unready down booting unsteady app",
		"?page=-1&q=%00%ff":               "",
	} {
		if got := listed(page(t, h, "/"+query, 200)); got != want {
			t.Errorf("%.40s: %q, want %q", query, got, want)
		}
	}
	body := page(t, h, "/?q=team%3D%22big+spenders%22&state=held", 200)
	for _, want := range []string{
		`<a href="./?q=team%3D%22big&#43;spenders%22&amp;state=failing">Failing <b>1</b></a>`,
		`<a href="./?q=team%3D%22big&#43;spenders%22&amp;state=held" aria-current="page">Held <b>1</b></a>`,
		`value="team=&#34;big spenders&#34;"`,
		`<input type="hidden" name="state" value="held">`,
		`<a href="./?q=team%3D%22big&#43;spenders%22">team=big spenders</a>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in:\n%s", want, body)
		}
	}
}

// One line of a target says its state and the reason. Below, each probe says its state.
func TestPageTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // since midnight
		now := time.Now()
		f := showing()
		held := &f.statuses[6]
		held.Source, held.Restarts, held.StartupDuration = config.SourceProcess, 2, 1500*time.Millisecond
		held.Instance = gate.Instance{ID: "17:99", Phase: gate.Running, StartedAt: now.Add(-2*time.Hour - 3*time.Minute)}
		held.Details = instance.Details{PID: 17, ExitCode: new(137), OOMKilled: true}
		p := &held.Probes[2]
		attempt := func(first, last time.Duration, n uint64, o prober.AttemptOutcome, reason action.Reason, output string) prober.Attempt {
			return prober.Attempt{Start: now.Add(-first), Last: now.Add(-last), Count: n, Outcome: o, Reason: reason, Output: output}
		}
		p.Address, p.Changed, held.Changed.Live = "http://127.0.0.1:80/live", now.Add(-10*time.Second), now.Add(-10*time.Second)
		p.Marks = []prober.Mark{
			{Start: now.Add(-20 * time.Second), Duration: 1200 * time.Microsecond},
			{Start: now.Add(-10 * time.Second), Duration: time.Second, Outcome: prober.Failed, Reason: action.Timeout},
		}
		p.LastSuccess = new(attempt(20*time.Second, 20*time.Second, 1, prober.Successful, "", ""))
		p.LastSuccess.Duration = 1200 * time.Microsecond
		p.Attempts = []prober.Attempt{
			attempt(30*time.Second, 20*time.Second, 3, prober.Successful, "", ""),
			attempt(14*time.Second, 10*time.Second, 1234, prober.Failed, action.HTTPStatus, "statuscode: 500"),
		}
		p.Attempts[0].Duration, p.Attempts[1].Duration = 1200*time.Microsecond, time.Second
		p.Attempts[1].Body, p.Attempts[1].Address = " no\x1bdatabase\n", "http://127.0.0.1:80/to"
		p.FirstFailure = new(attempt(40*time.Second, 40*time.Second, 1, prober.Failed, action.Timeout, "the first"))
		aged := attempt(time.Hour, time.Hour, 1, prober.UnknownOutcome, action.AgentLate, "")
		p.LastFailures = []prober.Attempt{aged, p.Attempts[1]}
		held.Probes[1].NextTurn = now.Add(2400 * time.Millisecond)
		held.Probes[1].LastFailures = []prober.Attempt{aged}
		held.Probes[1].LastFailures[0].Reason, held.Probes[1].LastFailures[0].ExitCode = action.ExitCode, 3
		unsteady := &f.statuses[1]
		unsteady.Probes[1].Gated, unsteady.Probes[0].Held = true, true

		h := newServer(t, options(f)).Handler()
		targets := aTarget.FindAllString(page(t, h, "/", 200), -1)
		for i, want := range map[int]string{
			0: "held ✗ held liveness: timeout (3/3), waits for a restart ✓ started ✓ ready ✗ not live 10 s team=big spenders zone=a " +
				"startup ✓ success readiness ✓ success next in 2.4 s failed 1 h ago: exit_code 3 " +
				"liveness ✗ 3/3 failures, held waits for a restart 11:59:40 successful, 1.2 ms 11:59:50 failed: timeout, 1.0 s 1.0 s " +
				"17:99 process running 2 h 3 min, 2 restarts killed: out of memory last exit code 137 PID 17 " +
				"liveness failed: http_status , 10 s ago ( 11:59:50 ), after 1.0 s 3 failures in a row since 11:59:20 (40 s), last success 11:59:40 " +
				"http://127.0.0.1:80/to statuscode: 500 no\\x1bdatabase",
			5: "unsteady ! ready, unsteady ✓ started ✓ ready ✓ live team=payments zone=a " +
				"startup ✓ success done readiness ○ waits liveness ! 1/3 failures static running, 0 restarts",
		} {
			if got := text(targets[i]); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
		all := text(page(t, h, "/targets/held", 200))
		for _, want := range []string{
			"held: held – prober_exporter", "✗ held liveness: timeout (3/3), waits for a restart team=big spenders zone=a ✓ started",
			"instance 17:99 , running source process up 2 h 3 min, since 09:57:00 took to start 1.5 s seen 2 restarts note killed",
			"liveness httpGet http://127.0.0.1:80/live ✗ 3/3 failures, held waits for a restart failed: http_status , 10 s ago ( 11:59:50 ), after 1.0 s " +
				"3 failures in a row since 11:59:20 (40 s), last success 11:59:40 http://127.0.0.1:80/to statuscode: 500 no\\x1bdatabase " +
				"2 attempts took 1.2 ms to 1.0 s; timeout 1 s initial delay 0 s timeout 1 s period 10 s",
			"result Failure since 11:59:50 (10 s) successful 0",
			"11:59:46 to 11:59:50 failed × 1,234 1.0 s http_status statuscode: 500 no\\x1bdatabase 11:59:30 to 11:59:40 successful × 3 1.2 ms " +
				"11:59:20 failed 0 µs timeout the first 11:00:00 unknown 0 µs agent_late Configuration",
			"Configuration name: held Health: /started/held /ready/held /live/held JSON As of 12:00:00 UTC · prober_exporter",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in %s", want, all)
			}
		}
	})
}

// The page shows an output as text, whatever the output contains.
func TestPageHostileOutput(t *testing.T) {
	f := showing()
	output := "<script>alert(1)</script>\x1b[31m\u202egnp\r\n\x00\xff'\"><img src=x onerror=alert(1)> \u2028{{.}} é\t" + strings.Repeat("<b>", 4000)
	for i := range f.statuses {
		for j := range f.statuses[i].Probes {
			p := &f.statuses[i].Probes[j]
			p.Attempts = []prober.Attempt{{Outcome: prober.Failed, Reason: action.ExitCode, Output: output}}
			p.LastFailures = p.Attempts
		}
	}
	f.statuses[0].Details.Message, f.statuses[0].Instance.ID, f.statuses[0].Labels = output, output, []config.Label{{Name: "x", Value: output}}
	opts := options(f)
	opts.TargetConfig = func(string) ([]byte, error) { return []byte(output), nil }
	opts.LastLoad = func() Load { return Load{File: output, Err: errors.New(output)} }
	h := newServer(t, opts).Handler()
	for _, path := range []string{"/", "/targets/app", "/?q=" + url.QueryEscape(output)} {
		body := page(t, h, path, 200)
		if n := strings.Count(body, "<script"); n != 1 {
			t.Errorf("%s: %d scripts, want our own", path, n)
		}
		for _, tag := range []string{"<img", "<b>&", "<b><b>"} {
			if strings.Contains(body, tag) {
				t.Errorf("%s: the output has become %s", path, tag)
			}
		}
		for _, r := range body {
			if r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%s: %U in the page", path, r)
			}
		}
		const want = "<script>alert(1)</script>\\x1b[31m\\u202egnp\n\\x00\\xff'\"><img src=x onerror=alert(1)> \\u2028{{.}} é\t"
		if !strings.Contains(html.UnescapeString(body), want) {
			t.Errorf("%s: the output is not shown", path)
		}
	}
}

// A large page is compressed for clients that accept gzip.
func TestPageGzip(t *testing.T) {
	h := newServer(t, options(&fake{statuses: many(perPage, well)})).Handler()
	plain := get(h, "/", "Accept-Encoding: br, gzip;q=0")
	if got := plain.Header().Get("Content-Encoding"); got != "" {
		t.Errorf("encoding %q of what must not be", got)
	}
	w := get(h, "/", "Accept-Encoding: br;q=1.0, gzip;q=0.8")
	z, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("encoding %q: %v", w.Header().Get("Content-Encoding"), err)
	}
	if body, err := io.ReadAll(z); err != nil || listed(string(body)) != listed(plain.Body.String()) {
		t.Errorf("%v: %s", err, body)
	}
}

// The page of a target says until when the certificate of its server is valid, or since when not,
// and only if the server has shown one.
func TestPageCertificate(t *testing.T) {
	at := time.Now()
	for want, expires := range map[string]time.Time{
		"3 d left":       at.Add(73 * time.Hour),
		"expired 2 h":    at.Add(-2*time.Hour - 30*time.Second),
		"no certificate": {},
	} {
		target := rich()
		target.Probes[1].CertExpires = expires
		body := page(t, newServer(t, options(&fake{statuses: []prober.TargetStatus{target}})).Handler(), "/targets/app", 200)
		if shown := strings.Contains(body, "certificate valid until"); shown == expires.IsZero() || shown && !strings.Contains(body, want) {
			t.Errorf("%s: %s", want, body)
		}
	}
}

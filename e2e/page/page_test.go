// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// life is a configuration of a target to which everything happens.
const life = `targets:
  - name: shop
    labels: {team: payments}
    instance: {source: listener, refreshSeconds: 0.2}
    startupProbe: {httpGet: {path: /start, port: PORT}, periodSeconds: 0.2, failureThreshold: 10000}
    readinessProbe: {httpGet: {path: /ready, port: PORT}, periodSeconds: 0.2, failureThreshold: 2}
    livenessProbe: {httpGet: {path: /live, port: PORT}, periodSeconds: 0.2}
  - name: other
    readinessProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.2}
`

func (a *app) ship(configuration string, args ...string) *agent {
	a.t.Helper()
	return ship(a.t, strings.ReplaceAll(configuration, "PORT", a.port), args...)
}

// The page follows a target from its start to its restart without another load.
func TestLife(t *testing.T) {
	app := newApp(t)
	app.set("/start", 503)
	b := open(t, app.ship(life).url)
	eval[bool](b, "window.same = true")

	b.shows("h1", "1 of 2 targets not ready")
	b.shows("#t-shop", "starting", "startup: http_status (", "/10000)", "✗ not started", "waits for startup", "listener")
	b.lists("shop other")
	b.shoot("1-starting")

	app.set("/start", 200)
	b.shows("h1", "All 2 targets ready")
	b.shows("#t-shop", "✓ ready", "✓ started", "✓ live", "done", "0 restarts", "running")
	b.shoot("2-ready")

	app.set("/ready", 500)
	b.shows("h1", "1 of 2 targets not ready")
	b.shows("#t-shop", "✗ not ready", "readiness: http_status (2/2)", "2/2 failures", "HTTP probe failed with statuscode: 500", "state of /ready",
		"in a row since", "last success", "http://127.0.0.1:"+app.port+"/ready")
	if n := eval[int](b, "document.querySelectorAll('#t-shop .readiness .strip .f').length"); n < 2 {
		t.Errorf("%d marks of failures, want 2 at least", n)
	}
	if got := eval[string](b, "document.title"); got != "1 of 2 targets not ready – prober_exporter" {
		t.Errorf("title %q", got)
	}
	b.shoot("3-not-ready")

	app.set("/live", 500)
	b.shows("#t-shop", "✗ held", "liveness: http_status (3/3), waits for a restart; next attempt in ", "✗ not live", "3/3 failures, held")
	b.shows("h1", "1 of 2 targets not ready, 1 not live")
	b.shoot("4-held")

	app.stop()
	b.shows("#t-shop", "not running")
	b.shoot("5-not-running")
	app.set("/ready", 200)
	app.set("/live", 200)
	app.start()
	b.shows("h1", "All 2 targets ready")
	b.shows("#t-shop", "✓ ready", "1 restart", "http_status")
	b.shoot("6-restarted")
	if !eval[bool](b, "window.same === true") {
		t.Error("the browser loaded the page again meanwhile")
	}
}

// The page counts the back-off down, and shows what the agent has done about a verdict.
func TestRestart(t *testing.T) {
	app := newApp(t)
	app.set("/live", 500)
	agent := app.ship(strings.Replace(life, "livenessProbe: ", `restart: {exec: {command: [echo, done]}, backOff: {initialSeconds: 1}, limit: {restarts: 2, seconds: 3600}}
    livenessProbe: `, 1))
	b := open(t, agent.url)
	b.shows("#t-shop .why", "liveness: http_status (3/3), restart in ", "(limit of 2 in 1 h)")
	b.shows("#t-shop .instance", "last restart ", ": succeeded")
	b.shoot("restart")
	b.fits()
	if got := b.text("#t-other"); strings.Contains(got, "last restart") {
		t.Errorf("a target without a restart block shows %s", got)
	}
	for _, width := range []int64{1280, 400} {
		b := open(t, agent.url+"/targets/shop", chromedp.EmulateViewport(width, 800))
		b.shows("#restart", "restart exec", "✗ restart in ", "(limit of 2 in 1 h)", "limit spent", "succeeded 2",
			"liveness: http_status (3/3)", "the command has ended: done", "HTTP probe failed with statuscode: 500")
		if n := eval[int](b, "document.querySelectorAll('#restart tbody tr').length"); n != 2 {
			t.Errorf("%d acts on the page, want 2", n)
		}
		b.fits()
		eval[bool](b, "document.querySelector('#restart').scrollIntoView(), true")
		b.shoot(fmt.Sprintf("restart-%d", width))
	}
}

// What a reader is at stays while the page changes: focus, what was typed, what was
// opened, and where the page is scrolled to.
func TestReaderIsNotDisturbed(t *testing.T) {
	app := newApp(t)
	app.set("/live", 500)
	agent := app.ship(strings.ReplaceAll(life, "source: listener, refreshSeconds: 0.2", "source: static"))
	b := open(t, agent.url, chromedp.EmulateViewport(800, 200))
	b.shows("#t-shop .liveness", "3/3 failures")
	app.set("/live", 200)
	b.shows("#t-shop .liveness", "success")
	b.do(chromedp.Click(chromedp.CSS("#t-shop .liveness summary")))
	b.do(chromedp.Focus(chromedp.CSS("#q")), chromedp.KeyEvent("o"))
	b.lists("shop other")
	eval[bool](b, "window.scrollTo(0, 90), true")
	app.set("/ready", 500)
	b.shows("#t-shop", "2/2 failures")
	b.goesOn()
	for expression, want := range map[string]string{
		"document.activeElement.id":    "q",
		"document.activeElement.value": "o",
		"document.querySelector('#t-shop .liveness details').open ? 'open' : 'closed'": "open",
		"String(window.scrollY)": "90",
		"location.search":        "?q=o",
	} {
		if got := eval[string](b, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

// The filter keeps typed text, and the address contains the filter: another reader sees the
// same.
func TestFilter(t *testing.T) {
	app := newApp(t)
	app.set("/ready", 500)
	agent := app.ship(life)
	b := open(t, agent.url)
	b.shows("#t-shop", "2/2 failures")
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "oth"))
	b.lists("other")
	if got := eval[string](b, "location.search"); got != "?q=oth" {
		t.Errorf("address %q", got)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), kb.Backspace+kb.Backspace+kb.Backspace))
	b.lists("shop other")
	b.do(chromedp.Click(chromedp.CSS("#t-shop .labels a"), chromedp.NodeVisible))
	b.lists("shop")
	b.shows(".tabs", "All 1", "Failing 1", "Ready 0")
	for _, state := range []struct{ href, want string }{
		{"state=ready", ""}, {"state=failing", "shop"}, {"state=held", ""}, {"state=starting", ""},
	} {
		b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(".tabs a[href*='%s']", state.href))))
		b.lists(state.want)
		testutil.Eventually(t, "a tab is chosen", func() error { // before the page is there, its list is empty, too
			got := eval[string](b, "document.querySelector('.tabs [aria-current]')?.href ?? ''")
			if !strings.Contains(got, state.href) || !strings.Contains(got, "q=team%3Dpayments") {
				return fmt.Errorf("%s: the current tab is %q", state.href, got)
			}
			return nil
		})
	}
	b.navigate(agent.url + "/?state=ready&q=o")
	b.lists("other")
}

// Without JavaScript the page shows the same, and its filter is a form.
func TestWithoutJavaScript(t *testing.T) {
	app := newApp(t)
	agent := app.ship(life)
	b := open(t, agent.url, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	testutil.Eventually(t, "the page says that all is well", func() error {
		b.navigate(agent.url)
		if got := b.text("h1"); !strings.Contains(got, "All 2 targets ready") {
			return fmt.Errorf("the page says %q", got)
		}
		return nil
	})
	if got := b.text("header"); strings.Contains(got, "Pause") || strings.Contains(got, "Up to date") {
		t.Errorf("the page offers things that it cannot do: %s", got)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "team=payments"), chromedp.Click(chromedp.CSS("#filter button")))
	b.lists("shop")
	if got := eval[string](b, "location.search"); got != "?q=team%3Dpayments" {
		t.Errorf("address %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("#t-shop h2 a")))
	b.shows("h1", "shop ✓ ready")
	b.shows("#readiness", "httpGet", "timeout", "took")
	b.shoot("without-javascript")
}

// The page says that the agent does not answer, and since when. It goes on with the next agent.
func TestAgentGone(t *testing.T) {
	app := newApp(t)
	agent := app.ship(life)
	b := open(t, agent.url)
	b.shows("h1", "All 2 targets ready")
	b.shows("#live", "Up to date")
	b.expect("Failed to load resource")
	agent.stop()
	b.shows("#live", "The agent does not answer: this is as of ", " UTC")
	if got := eval[string](b, "getComputedStyle(document.querySelector('main')).opacity"); got == "1" {
		t.Error("the page looks current")
	}
	b.shows("h1", "All 2 targets ready") // the last state stays
	b.shoot("gone")
	agent.start()
	b.shows("#live", "Up to date")
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	b.shows("#live", "Paused at")
	b.shows("#pause", "Resume")
	b.rests()
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	b.goesOn()

	// The page rests while nobody looks at it.
	hide := "Object.defineProperty(document, 'hidden', {value: %t, configurable: true}), document.dispatchEvent(new Event('visibilitychange'))"
	eval[bool](b, fmt.Sprintf(hide, false)) // asks, and the next line cuts the request short
	eval[bool](b, fmt.Sprintf(hide, true))
	b.rests()
	b.shows("#live", "Up to date")
	eval[bool](b, fmt.Sprintf(hide, false))
	b.goesOn()

	// An agent of another build has another page.
	eval[bool](b, "window.same = true, document.documentElement.dataset.build = 'other', true")
	testutil.Eventually(t, "the page of the other build", func() error {
		if eval[bool](b, "window.same === true") {
			return errors.New("the browser did not load the page again")
		}
		return nil
	})
	b.shows("#live", "Up to date")
}

// rests checks that the page makes no request, for longer than the usual time between two.
func (b *tab) rests() {
	b.t.Helper()
	const asked = "performance.getEntriesByType('resource').length"
	before := eval[int](b, asked)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	after, err := chromedp.Run(ctx, chromedp.Evaluate[int]("new Promise(done => setTimeout(() => done("+asked+"), 2500))", chromedp.EvalAwaitPromise))
	if err != nil || after != before {
		b.t.Errorf("the page has asked %d times (%v), want none", after-before, err)
	}
}

// goesOn waits until the page is newer.
func (b *tab) goesOn() {
	b.t.Helper()
	at := b.text("#asof")
	testutil.Eventually(b.t, "a newer page", func() error {
		if b.text("#asof") == at {
			return errors.New("the page does not go on")
		}
		return nil
	})
}

// Every page shows at the top that the agent has refused a file, or has no configuration.
func TestRefusedConfiguration(t *testing.T) {
	app := newApp(t)
	agent := app.ship("targets: [", "--config.fail-open", "--config.enable-auto-reload", "--config.auto-reload-interval=100ms")
	b := open(t, agent.url)
	b.shows(".notice", "No configuration is loaded", "nothing is probed", "prober.yml:1: ")
	b.shoot("no-configuration")
	agent.write(strings.ReplaceAll(life, "PORT", app.port))
	b.shows("h1", "All 2 targets ready")
	if got := b.text(".notice"); got != "" {
		t.Errorf("notice %q", got)
	}
	agent.write("targets: []\nwhat: is this\n")
	b.shows(".notice", "The agent refused", "still runs with", `prober.yml:2: `)
	b.shows("h1", "All 2 targets ready")
	b.shoot("refused")
	resp, err := http.Get(agent.url + "/live/shop")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 200 {
		t.Errorf("/live/shop %d, want 200", resp.StatusCode)
	}
}

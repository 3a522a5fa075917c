// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// pair is a target that is ready by one of two readiness probes, and live by both of two.
const pair = `targets:
  - name: pair
    labels: {team: payments}
    instance: {source: listener, refreshSeconds: 0.2}
    startupProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.2}
    readinessProbes:
      require: any
      probes:
        - {name: web, httpGet: {path: /web, port: PORT}, periodSeconds: 0.2, failureThreshold: 2}
        - {name: queue-of-orders, httpGet: {path: /queue, port: PORT}, periodSeconds: 0.2, failureThreshold: 2}
    livenessProbes:
      probes:
        - {name: web, httpGet: {path: /live, port: PORT}, periodSeconds: 0.2}
        - {name: db.1, tcpSocket: {port: PORT}, periodSeconds: 0.2}
  - name: other
    readinessProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.2}
`

// The page shows the members of each list in the list's column, below what the list says. The
// members come and go with a reload, without another load of the page.
func TestMembers(t *testing.T) {
	app := newApp(t)
	agent := app.ship(pair, "--config.enable-auto-reload", "--config.auto-reload-interval=100ms")
	b := open(t, agent.url)
	eval[bool](b, "window.same = true")
	b.shows("h1", "All 2 targets ready")
	b.shows("#t-pair .readiness", "readiness ✓ 2 of 2, any", "web ✓ success", "queue-of-orders ✓ success")
	b.shows("#t-pair .liveness", "liveness ✓ 2 of 2, all", "db.1 ✓ success")
	b.stacked("#t-pair .readiness")
	b.stacked("#t-pair .liveness")

	app.set("/queue", 500)
	b.shows("#t-pair .why", "readiness/queue-of-orders: http_status (2/2), 1 of 2, any")
	b.shows("#t-pair .readiness", "readiness ! 1 of 2, any", "web ✓ success", "queue-of-orders ✗ 2/2 failures")
	b.shows("#t-pair .trouble", "readiness/queue-of-orders failed: http_status", "HTTP probe failed with statuscode: 500")
	b.shows("h1", "All 2 targets ready")
	b.shoot("members-any")
	b.readable("members", agent.url, "/", "/targets/pair")

	app.set("/web", 500)
	b.navigate(agent.url)
	eval[bool](b, "window.same = true")
	b.shows("#t-pair", "✗ not ready", "0 of 2, any")
	app.set("/web", 200)
	b.shows("#t-pair", "✓ ready")
	app.set("/live", 500)
	b.shows("#t-pair .why", "liveness/web: http_status (3/3), 1 of 2, all, waits for a restart")
	b.shoot("members-held")
	b.lists("pair other")

	gone := strings.Replace(pair, "        - {name: queue-of-orders, httpGet: {path: /queue, port: PORT}, periodSeconds: 0.2, failureThreshold: 2}\n", "", 1)
	agent.write(strings.ReplaceAll(gone, "PORT", app.port))
	b.shows("#t-pair .readiness", "readiness ✓ 1 of 1, all")
	if n := eval[int](b, "document.querySelectorAll('#t-pair .readiness .member').length"); n != 1 {
		t.Errorf("%d members on the page, want 1", n)
	}
	agent.write(strings.ReplaceAll(pair, "PORT", app.port))
	b.shows("#t-pair .readiness", "queue-of-orders ✗ 2/2 failures")
	if !eval[bool](b, "window.same === true") {
		t.Error("the browser loaded the page again meanwhile")
	}

	b.navigate(agent.url + "/targets/pair")
	b.shows("#readiness", "readiness 2 probes", "! 1 of 2, any")
	b.shows("#readiness-queue-of-orders", "readiness/queue-of-orders httpGet", "✗ 2/2 failures")
	b.shows("#liveness-web", "✗ 3/3 failures, held")
	b.shoot("members-target")
}

// stacked checks that the members of a list lie below one another, in the column of their kind.
func (b *tab) stacked(list string) {
	b.t.Helper()
	places := eval[[][]float64](b, fmt.Sprintf(`[...document.querySelectorAll('%[1]s, %[1]s .member')].map(e => e.getBoundingClientRect()).map(r => [r.left, r.right, r.top, r.bottom])`, list))
	if len(places) != 3 {
		b.t.Fatalf("%s has %d places, want the list and two members", list, len(places))
	}
	column, first, second := places[0], places[1], places[2]
	for _, m := range [][]float64{first, second} {
		if m[0] < column[0] || m[1] > column[1] || m[2] < column[2] || m[3] > column[3] {
			b.t.Errorf("%s is at %v, a member at %v", list, column, m)
		}
	}
	if second[2] < first[3] {
		b.t.Errorf("the members of %s lie on one another: %v, %v", list, first, second)
	}
}

// readable checks pages in light and dark, on a large and a small screen.
func (b *tab) readable(name, url string, paths ...string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, width := range []int64{1280, 800, 400} {
			b.do(chromedp.EmulateViewport(width, 860))
			for _, path := range paths {
				b.navigate(url + path)
				b.fits()
				testutil.Eventually(b.t, "the page is there", func() error {
					if b.text("h1") == "" {
						return fmt.Errorf("there is no headline")
					}
					return nil
				})
				for _, what := range append(eval[[]string](b, audit), eval[[]string](b, nameless)...) {
					b.t.Errorf("%s, %s, %d pixels: %s", path, scheme, width, what)
				}
			}
			b.shoot(fmt.Sprintf("%s-%s-%d", name, scheme, width))
		}
	}
	b.do(chromedp.EmulateViewport(1280, 860))
}

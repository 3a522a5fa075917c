// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// shop is the configuration of the picture in the README, with a bit of everything.
const shop = `targets:
  - name: catalog
    labels: {team: shop}
    startupProbe: {httpGet: {path: /slow/8ms, port: PORT}, periodSeconds: 0.2}
    readinessProbe: {httpGet: {path: /slow/12ms, port: PORT}, periodSeconds: 0.3}
    livenessProbe: {httpGet: {path: /slow/3ms, port: PORT}, periodSeconds: 0.5}
  - name: checkout
    labels: {team: payments, tier: web}
    startupProbe: {httpGet: {path: /slow/6ms, port: PORT}, periodSeconds: 0.2}
    readinessProbe: {httpGet: {path: /checkout, port: PORT}, periodSeconds: 0.5, failureThreshold: 2}
    livenessProbe: {httpGet: {path: /slow/4ms, port: PORT}, periodSeconds: 0.5}
  - name: ledger
    labels: {team: payments, tier: data}
    startupProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.2}
    readinessProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.4}
    livenessProbe: {httpGet: {path: /ledger, port: PORT}, periodSeconds: 0.6, timeoutSeconds: 0.25}
  - name: mailer
    labels: {team: shop}
    readinessProbe: {exec: {command: [sh, -c, "cat QUEUE >&2; test ! -s QUEUE"]}, periodSeconds: 0.6}
    livenessProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.5}
  - name: recommender
    labels: {team: ml}
    startupProbe: {httpGet: {path: /model, port: PORT}, periodSeconds: 0.5, failureThreshold: 60}
    readinessProbe: {httpGet: {path: /slow/9ms, port: PORT}, periodSeconds: 0.5}
    livenessProbe: {httpGet: {path: /slow/9ms, port: PORT}, periodSeconds: 0.5}
  - name: search
    labels: {team: shop}
    readinessProbe: {httpGet: {path: /every/7, port: PORT}, periodSeconds: 0.3}
    livenessProbe: {httpGet: {path: /slow/5ms, port: PORT}, periodSeconds: 0.5}
  - name: sessions
    labels: {team: shop, tier: data}
    readinessProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.3}
    livenessProbe: {tcpSocket: {port: PORT}, periodSeconds: 0.5}
`

// audit returns every text whose contrast is too small to read: less than the 4.5 to 1 of WCAG
// AA.
const audit = `(() => {
  const parse = c => c.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3]) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).flatMap(e => {
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    return ratio < 4.5 ? [ratio.toFixed(2) + ' ' + e.outerHTML.slice(0, 100)] : [];
  });
})()`

// nameless returns every control and picture without a name for screen readers.
const nameless = `[...document.querySelectorAll('a, button, input:not([type=hidden]), svg, nav, [role=search], summary')]
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.getAttribute('role') === 'search' || e.labels?.length)).map(e => e.outerHTML.slice(0, 100))`

// The page is readable in light and dark, on a large and a small screen, by eye and with a
// screen reader.
func TestReadable(t *testing.T) {
	app := newApp(t)
	app.set("/model", 503)
	queue := t.TempDir() + "/queue"
	agent := app.ship(strings.ReplaceAll(shop, "QUEUE", queue))
	fill := func(content string) {
		t.Helper()
		if err := os.WriteFile(queue, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill("")
	b := open(t, agent.url)
	b.shows("h1", "1 of 7 targets not ready")
	app.stop()
	b.shows("h1", "7 of 7 targets not ready")
	app.start()
	b.shows("#t-search", "✓ ready", "1 restart")
	b.shows("#t-recommender", "/60 failures")
	testutil.Eventually(t, "the history of liveness is full", func() error {
		if n := eval[int](b, "document.querySelectorAll('#t-ledger .liveness .strip li').length"); n < 16 {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	fill("queue is stuck: 1,204 mails, the oldest from 02:47:10\nsmtp: 421 4.7.0 try again later\n")
	app.set("/checkout", 503)
	app.set("/ledger", 500)
	b.shows("#t-mailer", "3/3 failures")
	b.shows("#t-ledger", "held")
	b.shows("#t-checkout", "in a row")
	b.shows("h1", "3 of 7 targets not ready, 1 not live")
	b.expect("/targets/nobody")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.do(chromedp.EmulateViewport(1280, 1110))
		b.navigate(agent.url)
		b.shoot("status-" + scheme) // for docs/images
		for _, width := range []int64{1280, 800, 400} {
			b.do(chromedp.EmulateViewport(width, 860))
			for _, path := range []string{"/", "/targets/ledger", "/targets/mailer", "/targets/nobody"} {
				b.navigate(agent.url + path)
				b.fits()
				for _, what := range append(eval[[]string](b, audit), eval[[]string](b, nameless)...) {
					t.Errorf("%s, %s, %d pixels: %s", path, scheme, width, what)
				}
				if path == "/" || width != 800 && path != "/targets/nobody" {
					b.shoot("readable" + strings.ReplaceAll(path, "/", "-") + "-" + scheme + "-" + map[int64]string{1280: "wide", 800: "middle", 400: "narrow"}[width])
				}
			}
		}
	}
	if got := eval[string](b, "getComputedStyle(document.body).backgroundColor"); got != "rgb(20, 23, 27)" {
		t.Errorf("the dark page is %s", got)
	}
	// With the keyboard a reader reaches the filter, a target, and its output.
	b.navigate(agent.url)
	b.do(chromedp.EmulateViewport(1280, 860))
	reached := map[string]bool{}
	for range 60 {
		b.do(chromedp.KeyEvent("\t"))
		reached[eval[string](b, "document.activeElement.id || document.activeElement.tagName + ' ' + document.activeElement.textContent.slice(0, 8)")] = true
	}
	for _, want := range []string{"q", "pause", "A ledger", "A mailer", "PRE queue is"} {
		if !reached[want] {
			t.Errorf("the tab key does not reach %s, but %v", want, reached)
		}
	}
}

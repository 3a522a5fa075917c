// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostile is an output that tries to become a part of the page.
const hostile = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b[31mred\x1b[0m \u202etxt.exe\u2066 </pre></li></main><style>*{display:none}</style>\x00\xff "

// An output stays text and within its place, whatever it contains.
func TestHostileOutput(t *testing.T) {
	app := newApp(t)
	output := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(output, []byte(hostile+strings.Repeat("W", 10<<10)+strings.Repeat("\u0300", 500)+strings.Repeat("\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := app.ship(`targets:
  - name: hostile
    labels: {what: "<b onmouseover=alert(1)>` + strings.Repeat("long", 100) + `"}
    readinessProbe: {exec: {command: [sh, -c, "cat ` + output + `; exit 1"]}, periodSeconds: 0.2}
`)
	for _, width := range []int64{1280, 400} {
		for _, path := range []string{"/", "/targets/hostile"} {
			b := open(t, agent.url+path, chromedp.EmulateViewport(width, 800))
			b.shows("main", `<script>document.title='owned'</script><img src=x onerror="document.title='owned'">\x1b[31mred\x1b[0m \u202etxt.exe\u2066 </pre></li></main>`)
			b.shows("main", "exit_code")
			if got := eval[string](b, "document.title"); strings.Contains(got, "owned") {
				t.Errorf("%s: the output has run", path)
			}
			if n := eval[int](b, "document.querySelectorAll('main script, main img, main style, main [onmouseover]').length"); n != 0 {
				t.Errorf("%s: the output has become %d elements", path, n)
			}
			b.fits()
			if h := eval[int](b, "Math.max(...[...document.querySelectorAll('main .trouble pre')].map(e => e.offsetHeight))"); h > 200 {
				t.Errorf("%s: the output is %d pixels high", path, h)
			}
			b.shoot(fmt.Sprintf("hostile-%d%s", width, strings.ReplaceAll(path, "/", "-")))
		}
	}
}

// fits checks that the page is not wider than the window.
func (b *tab) fits() {
	b.t.Helper()
	if got := eval[[]int](b, "[document.documentElement.scrollWidth, window.innerWidth]"); got[0] > got[1] {
		wide := eval[string](b, "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120)).join('\\n')")
		b.t.Errorf("the page is %d pixels wide in a window of %d:\n%s", got[0], got[1], wide)
	}
}

// With a thousand targets the page shows the worst hundred, and the filter finds each target.
func TestThousand(t *testing.T) {
	app := newApp(t)
	app.set("/ready", 503)
	var c strings.Builder
	c.WriteString("targets:\n")
	for i := range 999 {
		fmt.Fprintf(&c, "  - {name: t-%03d, labels: {shard: s%d}, readinessProbe: {tcpSocket: {port: PORT}, periodSeconds: 5, timeoutSeconds: 20}}\n", i, i%10)
	}
	c.WriteString("  - {name: z-bad, readinessProbe: {httpGet: {port: PORT, path: /ready}, periodSeconds: 0.5}}\n")
	agent := app.ship(c.String())
	b := open(t, agent.url)
	b.shows("h1", "✗ 1 of 1,000 targets not ready")
	b.shows(".range", "1 to 100 of 1,000, the worst first next")
	if got := strings.Fields(b.targets()); len(got) != 100 || got[0] != "z-bad" || got[99] != "t-098" {
		t.Errorf("%d targets: %v", len(got), got)
	}
	b.shoot("thousand")
	b.fits()
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "T-77"))
	b.lists("t-770 t-771 t-772 t-773 t-774 t-775 t-776 t-777 t-778 t-779")
	b.navigate(agent.url + "/?q=shard%3Ds7")
	b.shows(".tabs", "All 100", "Ready 100")
	b.navigate(agent.url)
	b.do(chromedp.Click(chromedp.CSS("a[rel=next]")))
	b.shows(".range", "101 to 200 of 1,000")
	b.do(chromedp.EmulateViewport(400, 800))
	b.fits()
}

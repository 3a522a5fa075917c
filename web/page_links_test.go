// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var aLink = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)

// Every link of every page leads somewhere, whatever prefix is before the path: the agent's
// own, or that of a proxy that strips it.
func TestPageLinks(t *testing.T) {
	for _, test := range []struct {
		name, route, external, browser string
	}{
		{"root", "", "", "/"},
		{"prefix", "/a/b", "", "/a/b/"},
		{"external", "", "http://example.org/probes/", "/probes/"},
		{"a proxy that strips", "/", "http://example.org/probes/", "/probes/"},
		{"a proxy that replaces", "/a", "http://example.org/x/y/", "/x/y/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := options(&fake{statuses: append(many(2*perPage, well), showing().statuses...)})
			opts.RoutePrefix, opts.TelemetryPath, opts.EnablePprof = test.route, "/some/metrics", true
			if test.external != "" {
				external, err := url.Parse(test.external)
				if err != nil {
					t.Fatal(err)
				}
				opts.ExternalURL = external
			}
			s := newServer(t, opts)
			h := s.Handler()
			// ask returns what a browser finds at a path.
			ask := func(at string) (int, string) {
				inside, ok := strings.CutPrefix(at, test.browser)
				if !ok {
					t.Errorf("%s is not under %s", at, test.browser)
				}
				w := get(h, s.prefix+"/"+inside)
				return w.Code, w.Body.String()
			}
			seen := map[string]bool{}
			for _, from := range []string{"", "?page=2", "targets/app", "targets/nobody"} {
				base, err := url.Parse(test.browser + from)
				if err != nil {
					t.Fatal(err)
				}
				_, body := ask(test.browser + from)
				for _, m := range aLink.FindAllStringSubmatch(body, -1) {
					link, err := base.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
					if err != nil {
						t.Fatal(err)
					}
					at := link.RequestURI()
					if seen[at] {
						continue
					}
					seen[at] = true
					if strings.HasPrefix(m[1], "./targets/t") { // the pages of these targets are all alike
						continue
					}
					if status, _ := ask(at); status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
						t.Errorf("%s links to %s, which is %d", base, at, status)
					}
				}
			}
			for _, want := range []string{
				"", "some/metrics", "api/v1/targets", "config", "started?verbose", "ready?verbose", "live?verbose", "-/healthy?verbose", "-/ready?verbose",
				"debug/pprof/", "static/page.css?v=" + build(), "static/page.js?v=" + build(), "static/icon.svg?v=" + build(),
				"?page=2", "?page=3", "?state=failing", "targets/unready", "api/v1/targets/app", "live/app?verbose",
			} {
				if !seen[test.browser+want] {
					t.Errorf("no link to %s", test.browser+want)
				}
			}
		})
	}
}

// Pages are for reading. A method that would change something is refused, but HEAD is not, and
// a page that does not exist is 404.
func TestPageMethods(t *testing.T) {
	f := showing()
	f.removed = map[string]bool{"gone": true}
	s := newServer(t, options(f))
	h := s.Handler()
	for _, at := range []string{"/", "/targets/app", "/static/page.css"} {
		if w := do(h, http.MethodHead, at); w.Code != 200 {
			t.Errorf("HEAD %s: %d", at, w.Code)
		}
		if w := do(h, http.MethodPost, at); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d, allowed %q", at, w.Code, w.Header().Get("Allow"))
		}
	}
	for at, want := range map[string]string{
		"/targets/nobody":        "✗ There is no target nobody. As of",
		"/targets/%3Cb%3E%00x":   `✗ There is no target "<b>\x00x". As of`,
		"/targets/gone":          "✗ A reload has removed the target gone, which is not probed and counts as live. As of",
		"/targets/nobody?q=else": "✗ There is no target nobody. As of",
	} {
		if got := text(page(t, h, at, 404)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
	for _, at := range []string{"/static/", "/static/page.html", "/static/target.html", "/static/..%2fpage.go", "/targets/", "/targets"} {
		if w := get(h, at); w.Code != 404 {
			t.Errorf("%s: %d, want 404", at, w.Code)
		}
	}
	if w := get(s.HealthHandler(), "/"); w.Code != 404 {
		t.Errorf("the health listener has a page: %d", w.Code)
	}
}

// A browser asks for a file once if the file's name is that of this build. Under any other name
// the browser asks whether the file is still the same.
func TestAssets(t *testing.T) {
	h := newServer(t, options(showing())).Handler()
	for name, mediaType := range assets {
		at := "/static/" + name
		w := get(h, at)
		etag := w.Header().Get("ETag")
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Content-Type") != mediaType || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d, %d bytes, %v", at, w.Code, w.Body.Len(), w.Header())
		}
		if w := get(h, at, "If-None-Match: "+etag); w.Code != 304 {
			t.Errorf("%s: %d for what the browser has, want 304", at, w.Code)
		}
		if w := get(h, at+"?v=other", "If-None-Match: \"other\""); w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s of another build: %d, %q", at, w.Code, w.Header().Get("Cache-Control"))
		}
		if w := get(h, at+"?v="+build()); w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s of this build: %q", at, w.Header().Get("Cache-Control"))
		}
	}
	var total int
	entries, err := files.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := files.ReadFile(path.Join("static", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		total += len(body)
	}
	if total > 30_000 {
		t.Errorf("%d bytes in every pod, want 30,000 at most", total)
	}
}

// The page shows trouble of the agent itself before anything else.
func TestPageNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := showing()
		opts := options(f)
		time.Sleep(12 * time.Hour)
		load := Load{File: "prober.yml", At: time.Now().Add(-time.Minute), Applied: time.Now().Add(-24 * time.Hour)}
		opts.LastLoad = func() Load { return load }
		h := newServer(t, opts).Handler()
		says := func(want ...string) {
			t.Helper()
			for _, at := range []string{"/", "/targets/app"} {
				body := page(t, h, at, 200)
				notices := regexp.MustCompile(`(?s)<section class="notice .*?</section>`).FindAllString(body, -1)
				for i := range notices {
					notices[i] = text(notices[i])
				}
				if got := strings.Join(notices, "\n"); got != strings.Join(want, "\n") {
					t.Errorf("%s:\n%s\nwant\n%s", at, got, strings.Join(want, "\n"))
				}
			}
		}
		says()
		load.Err = errors.New("prober.yml:3: targets[0].name: is required\nprober.yml:9: targets[1]: <b>")
		says("The agent refused prober.yml at 11:59:00 and still runs with the configuration of 1999-12-31 12:00:00. " +
			"prober.yml:3: targets[0].name: is required prober.yml:9: targets[1]: <b>")
		f.stopping, f.overdue = true, []string{"a/liveness"}
		load.Err = errors.New(strings.Repeat("x\n", 30) + "x")
		says("The agent refused prober.yml at 11:59:00 and still runs with the configuration of 1999-12-31 12:00:00. x x x x x x x x x x … and 21 more",
			"1 probe is overdue (the agent is stuck or lacks CPU time): a/liveness",
			"The agent is stopping: every /live answers 200, /ready 503.")
		f.stopping, f.overdue = false, strings.Split("a b c d e f g", " ")
		load.Err = nil
		says("7 probes are overdue (the agent is stuck or lacks CPU time): a, b, c, d, e, …")

		f.overdue, f.sourceUp = nil, map[string]bool{"process": true, "kubernetes": false, "docker": false}
		want := "The source docker does not answer, so the agent sees no restarts. The source kubernetes does not answer"
		if got := text(page(t, h, "/", 200)); !strings.Contains(got, want) || strings.Contains(got, "The process source") {
			t.Errorf("no %q in %s", want, got)
		}

		*f = fake{unloaded: true}
		load.Err = errors.New("open prober.yml: no such file")
		body := text(page(t, h, "/", 200))
		for _, want := range []string{
			"No configuration is loaded (prober.yml): nothing is probed. Every /live answers 200, /started and /ready answer 503. open prober.yml: no such file",
			"✗ No configuration Filter",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("no %q in %s", want, body)
			}
		}
	})
}

// One page shows a hundred targets, asks for the attempts of these alone, and says how many
// targets there are.
func TestPageOfMany(t *testing.T) {
	f := &fake{statuses: append(many(1234, well), unready("bad"))}
	h := newServer(t, options(f)).Handler()
	for at, want := range map[string][3]string{
		"/":                   {"bad t0", "t97 t98", "1 to 100 of 1,235, the worst first next"},
		"/?page=2":            {"t99 t100", "t197 t198", "101 to 200 of 1,235, the worst first previous next"},
		"/?page=99":           {"t1199 t1200", "t1232 t1233", "1,201 to 1,235 of 1,235, the worst first previous"},
		"/?page=x":            {"bad t0", "t97 t98", "1 to 100 of 1,235, the worst first next"},
		"/?q=t12&state=ready": {"t12 t120", "t1232 t1233", ""},
	} {
		body := page(t, h, at, 200)
		got := listed(body)
		if !strings.HasPrefix(got, want[0]+" ") || !strings.HasSuffix(got, " "+want[1]) {
			t.Errorf("%s: %.20s … %s, want %s … %s", at, got, got[max(0, len(got)-20):], want[0], want[1])
		}
		if n := len(strings.Fields(got)); n > perPage {
			t.Errorf("%s: %d targets", at, n)
		}
		shown := regexp.MustCompile(`(?s)<p class="range">.*?</p>`).FindString(body)
		if text(shown) != want[2] {
			t.Errorf("%s: %q, want %q", at, text(shown), want[2])
		}
	}
	if got := text(page(t, h, "/", 200)); !strings.HasPrefix(got, "1 of 1,235 targets not ready – prober_exporter") {
		t.Errorf("title: %.80s", got)
	}
}

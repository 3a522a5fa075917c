// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// All paths exist under a prefix. At the root are the health endpoints and the way to the
// prefix.
func TestPrefix(t *testing.T) {
	external := &url.URL{Scheme: "http", Host: "example.org", Path: "/probes/"}
	tests := []struct {
		name, route string
		external    *url.URL
		prefix      string
	}{
		{"none", "", nil, ""},
		{"root", "/", nil, ""},
		{"route", "/a/b", nil, "/a/b"},
		{"route with slashes", "a/", nil, "/a"},
		{"external", "", external, "/probes"},
		{"external without a host", "", &url.URL{Path: "/x"}, "/x"},
		{"a proxy that strips", "/", external, ""},
		{"a proxy that replaces", "/a", external, "/a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			opts := options(mixed())
			opts.RoutePrefix, opts.ExternalURL = test.route, test.external
			opts.EnableLifecycle, opts.EnablePprof = true, true
			h := newServer(t, opts).Handler()
			for _, path := range []string{"/live/app", "/started/app", "/ready/app", "/-/healthy", "/-/ready"} {
				expect(t, get(h, path), 200, "ok\n")
				expect(t, get(h, test.prefix+path), 200, "ok\n")
			}
			for _, path := range []string{"/", "/metrics", "/config", "/api/v1/targets", "/api/v1/targets/app", "/targets/app", "/static/page.css", "/debug/pprof/", "/debug/pprof/cmdline"} {
				if w := get(h, test.prefix+path); w.Code != http.StatusOK {
					t.Errorf("%s: %d: %s", test.prefix+path, w.Code, w.Body)
				}
				if test.prefix == "" || path == "/" {
					continue
				}
				if w := get(h, path); w.Code != http.StatusNotFound {
					t.Errorf("%s: %d, want 404", path, w.Code)
				}
			}
			expect(t, do(h, http.MethodPost, test.prefix+"/-/reload"), 200, "ok\n")
			if test.prefix != "" {
				expectRedirect(t, h, "/", test.prefix+"/")
				expectRedirect(t, h, test.prefix, test.prefix+"/")
			}
			expectRedirect(t, h, test.prefix+"/debug/pprof", test.prefix+"/debug/pprof/")
		})
	}
}

func expectRedirect(t *testing.T, h http.Handler, from, to string) {
	t.Helper()
	w := get(h, from)
	if w.Code/100 != 3 || w.Header().Get("Location") != to {
		t.Errorf("%s: %d to %q, want a redirect to %q", from, w.Code, w.Header().Get("Location"), to)
	}
}

// New refuses a path that would hide a health endpoint, or that a mux cannot hold, before
// anything is served.
func TestNewErrors(t *testing.T) {
	for _, test := range []struct {
		name      string
		change    func(*Options)
		wantError string
	}{
		{"prefix with braces", func(o *Options) { o.RoutePrefix = "/{x}" }, `route prefix "/{x}": must be a path of letters, digits and -._~ that begins with /`},
		{"prefix that is not clean", func(o *Options) { o.RoutePrefix = "/a/../b" }, `route prefix "/a/../b": must be a path of letters, digits and -._~ that begins with /`},
		{"prefix of a check", func(o *Options) { o.RoutePrefix = "/live/x" }, `route prefix "/live/x": /live is taken`},
		{"prefix of the agent's", func(o *Options) { o.RoutePrefix = "/-" }, `route prefix "/-": /- is taken`},
		{"prefix of the external URL", func(o *Options) { o.ExternalURL = &url.URL{Path: "/ready"} }, `route prefix "/ready": /ready is taken`},
		{"telemetry without a slash", func(o *Options) { o.TelemetryPath = "metrics" }, `telemetry path "metrics": must be a path of letters, digits and -._~ that begins with /`},
		{"telemetry at the root", func(o *Options) { o.TelemetryPath = "/" }, `telemetry path "/": must be a path of letters, digits and -._~ that begins with /`},
		{"telemetry on the API", func(o *Options) { o.TelemetryPath = "/api/v1/targets" }, `telemetry path "/api/v1/targets": /api is taken`},
		{"telemetry on the pages", func(o *Options) { o.TelemetryPath = "/targets/x" }, `telemetry path "/targets/x": /targets is taken`},
		{"telemetry on a check", func(o *Options) { o.TelemetryPath = "/ready" }, `telemetry path "/ready": /ready is taken`},
		{"external URL without a scheme", func(o *Options) { o.ExternalURL = &url.URL{Host: "x"} }, `external URL "//x": `},
	} {
		opts := options(mixed())
		test.change(&opts)
		if _, err := New(opts); err == nil || !strings.HasPrefix(err.Error(), test.wantError) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.wantError)
		}
	}
}

func TestMetrics(t *testing.T) {
	opts := options(mixed())
	opts.TelemetryPath = "/some/where"
	h := newServer(t, opts).Handler()
	expect(t, get(h, "/some/where"), 200, "metrics\n")
	expect(t, get(h, "/metrics"), 404, "404 page not found\n")
	if w := do(h, http.MethodPost, "/some/where"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// For any path the answer is short and has a known status, and nothing panics.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"/live/app", "/live/%00", "/live/..%2f..%2fapi", "//live", "/live//app", "/live/%", "/ready?target=%ff&target=%zz;&exclude", "/live/{target}", "/%2fready", "/ready/../config", "*",
	} {
		f.Add(path)
	}
	opts := options(mixed())
	opts.RoutePrefix, opts.EnableLifecycle = "/prefix", true
	s, err := New(opts)
	if err != nil {
		f.Fatal(err)
	}
	handlers := []http.Handler{s.Handler(), s.HealthHandler()}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		for _, h := range handlers {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.URL, r.RequestURI = u, path
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			redirect := w.Code/100 == 3 // a redirect repeats the path
			if !redirect && w.Code == http.StatusNotFound && w.Body.Len() > 1024 {
				t.Errorf("%d bytes for %d", w.Body.Len(), len(path))
			}
			switch w.Code {
			case 200, 301, 302, 307, 308, 400, 404, 405, 503:
			default:
				t.Errorf("status %d", w.Code)
			}
		}
	})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// lifecyclePaths are the endpoints that change something.
var lifecyclePaths = []string{"/-/reload", "/api/v1/targets/app/probe", "/api/v1/targets/nosuch/probe", "/api/v1/targets/app/new-instance"}

// Without the flag no request changes anything, and a 403 reveals nothing.
func TestLifecycleDisabled(t *testing.T) {
	f := mixed()
	opts := options(f)
	opts.Reload = func(context.Context) error { t.Error("reloaded"); return nil }
	h := newServer(t, opts).Handler()
	for _, path := range lifecyclePaths {
		expect(t, do(h, http.MethodPost, path), 403, "Lifecycle API is not enabled.\n")
	}
	expect(t, do(h, http.MethodPut, "/-/reload"), 403, "Lifecycle API is not enabled.\n")
	if f.probed != nil || f.newInstance != nil {
		t.Errorf("probed %v, new instances of %v", f.probed, f.newInstance)
	}
}

// With the flag each endpoint does its work, and only for a POST.
func TestLifecycle(t *testing.T) {
	f := mixed()
	opts := options(f)
	opts.EnableLifecycle = true
	var result error
	reloads := 0
	opts.Reload = func(context.Context) error { reloads++; return result }
	h := newServer(t, opts).Handler()

	expect(t, do(h, http.MethodPost, "/-/reload"), 200, "ok\n")
	expect(t, do(h, http.MethodPut, "/-/reload"), 200, "ok\n")
	result = errors.New("prober.yml:3: targets: must be there")
	expect(t, do(h, http.MethodPost, "/-/reload"), 500, "prober.yml:3: targets: must be there\n")
	expect(t, do(h, http.MethodPost, "/api/v1/targets/app/probe"), 200, "{}\n")
	expect(t, do(h, http.MethodPost, "/api/v1/targets/nosuch/probe"), 404, `{"error":"unknown target nosuch"}`+"\n")
	expect(t, do(h, http.MethodPost, "/api/v1/targets/db/new-instance"), 200, "{}\n")
	expect(t, do(h, http.MethodPost, "/api/v1/targets/nosuch/new-instance"), 404, `{"error":"unknown target nosuch"}`+"\n")
	for _, path := range lifecyclePaths {
		w := get(h, path)
		if w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Header().Get("Allow"), "POST") {
			t.Errorf("GET %s: %d, Allow %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
	if reloads != 3 || !slices.Equal(f.probed, []string{"app", "nosuch"}) || !slices.Equal(f.newInstance, []string{"db", "nosuch"}) {
		t.Errorf("%d reloads, probed %v, new instances of %v", reloads, f.probed, f.newInstance)
	}
}

// A page may use the lifecycle API through its reader's browser if the page is of this site and
// its name is allowed. A page of another site may not. Neither may a page whose own name
// resolves to the agent, although the browser takes that name for this site. Clients other than
// browsers may.
func TestBrowsers(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle = true
	opts.LifecycleHosts = []string{"Prober.example.net", "prober"}
	opts.ExternalURL = &url.URL{Scheme: "https", Host: "probes.example.org", Path: "/"}
	h := newServer(t, opts).Handler()
	const same, cross = "same-origin", "cross-site"
	for _, test := range []struct {
		name, host, origin, site string
		want                     int
	}{
		{"curl", "evil.example", "", "", 200},
		{"DNS rebinding", "evil.example", "http://evil.example", "", 403},
		{"DNS rebinding, with a port", "evil.example:9709", "http://evil.example:9709", "", 403},
		{"DNS rebinding, a browser that says more", "evil.example", "http://evil.example", same, 403},
		{"DNS rebinding, without an origin", "evil.example", "", same, 403},
		{"DNS rebinding, without a referrer", "evil.example", "null", same, 403},
		{"DNS rebinding, a name like an address", "127.0.0.1.evil.example", "http://127.0.0.1.evil.example", "", 403},
		{"DNS rebinding, a name like localhost", "localhost.evil.example", "http://localhost.evil.example", "", 403},
		{"no host", "", "http://evil.example", "", 403},
		{"another site", "localhost:9709", "https://evil.example", "", 403},
		{"another site, an address", "10.0.0.1:9709", "http://10.0.0.2:9709", "", 403},
		{"another port", "10.0.0.1:9709", "http://10.0.0.1:8080", "", 403},
		{"another site, by its fetch metadata", "localhost:9709", "http://localhost:9709", cross, 403},
		{"a sandbox", "localhost:9709", "null", "", 403},
		{"nonsense", "localhost:9709", "::", "", 403},

		{"localhost", "localhost:9709", "http://localhost:9709", same, 200},
		{"Localhost.", "Localhost.:9709", "http://Localhost.:9709", "", 200},
		{"an address", "10.0.0.1:9709", "http://10.0.0.1:9709", "", 200},
		{"an address without a port", "10.0.0.1", "http://10.0.0.1", "", 200},
		{"an IPv6 address", "[::1]:9709", "http://[::1]:9709", "", 200},
		{"an IPv6 address without a port", "[::1]", "http://[::1]", "", 200},
		{"a host of the list", "prober.example.net:9709", "http://prober.example.net:9709", "", 200},
		{"below a host of the list", "a.prober.example.net", "http://a.prober.example.net", "", 403},
		{"typed by the reader", "localhost:9709", "", "none", 200},

		{"the external URL, passed on", "probes.example.org", "https://probes.example.org", same, 200},
		{"the external URL, behind a proxy that asks by another name", "backend:9709", "https://probes.example.org", "", 200},
		{"another page behind that proxy", "backend:9709", "https://evil.example", "", 403},
		{"an old browser behind a proxy that asks by another name", "prober:9709", "", same, 200},
	} {
		r := httptest.NewRequest(http.MethodPost, "/-/reload", http.NoBody)
		r.Host = test.host
		for key, value := range map[string]string{"Origin": test.origin, "Sec-Fetch-Site": test.site} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != test.want {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.want)
		}
	}
	for _, path := range lifecyclePaths { // the check is around all of them
		r := httptest.NewRequest(http.MethodPost, path, http.NoBody)
		r.Host = "evil.example"
		r.Header.Set("Origin", "http://evil.example")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		expect(t, w, 403, "pages of evil.example may not use the lifecycle API: see --web.lifecycle-allowed-host\n")
	}
}

// Without an external URL and a list, an empty origin is not trusted.
func TestBrowserWithoutOrigin(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle = true
	r := httptest.NewRequest(http.MethodPost, "/-/reload", http.NoBody)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	if newServer(t, opts).Handler().ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("%s: %d, want 403", r.Host, w.Code)
	}
}

// A text that is not a name cannot be a host.
func TestLifecycleHosts(t *testing.T) {
	for _, host := range []string{"", "http://a", "a:9709", "a/b", "*.example.org", "a b", ".a", "ä"} {
		opts := options(mixed())
		opts.LifecycleHosts = []string{host}
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("lifecycle host %q: must be", host)) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// A request with a large body, or one that breaks off, changes nothing.
func TestBodies(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle = true
	reloads := 0
	opts.Reload = func(context.Context) error { reloads++; return nil }
	h := newServer(t, opts).Handler()
	for _, test := range []struct {
		name string
		body io.Reader
		want int
	}{
		{"small", strings.NewReader("{}"), 200},
		{"as large as may be", strings.NewReader(strings.Repeat("x", maxBody)), 200},
		{"large", strings.NewReader(strings.Repeat("x", maxBody+1)), 413},
		{"endless", endless{}, 413},
		{"broken off", io.MultiReader(strings.NewReader("{"), broken{}), 400},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/-/reload", test.body))
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d", test.name, w.Code, test.want)
		}
	}
	if reloads != 2 {
		t.Errorf("%d reloads, want 2", reloads)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// deadlines is a response writer that notes its write deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	write []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = append(d.write, t)
	return nil
}

// Every response has 30 s, the response to a reload from the end of the reload. A profile has
// no limit.
func TestDeadlines(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle, opts.EnablePprof = true, true
	s := newServer(t, opts)
	for _, test := range []struct {
		h            http.Handler
		method, path string
		want         []time.Duration
	}{
		{s.HealthHandler(), "GET", "/live", []time.Duration{writeTimeout}},
		{s.HealthHandler(), "POST", "/nosuch", []time.Duration{writeTimeout}},
		{s.Handler(), "GET", "/metrics", []time.Duration{writeTimeout}},
		{s.Handler(), "GET", "/api/v1/targets", []time.Duration{writeTimeout}},
		{s.Handler(), "POST", "/-/reload", []time.Duration{writeTimeout, writeTimeout}},
		{s.Handler(), "GET", "/debug/pprof/cmdline", []time.Duration{writeTimeout, 0}},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		before := time.Now()
		test.h.ServeHTTP(w, httptest.NewRequest(test.method, test.path, http.NoBody))
		after := time.Now()
		ok := len(w.write) == len(test.want)
		for i := 0; ok && i < len(w.write); i++ {
			if test.want[i] == 0 {
				ok = w.write[i].IsZero()
			} else {
				ok = !w.write[i].Before(before.Add(test.want[i])) && !w.write[i].After(after.Add(test.want[i]))
			}
		}
		if !ok {
			t.Errorf("%s %s at %v: deadlines %v, want %v", test.method, test.path, before, w.write, test.want)
		}
	}
}

// The deadlines of a request end with it: a connection serves requests of every kind, one after
// the other.
func TestKeepAlive(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle, opts.EnablePprof = true, true
	server := httptest.NewServer(newServer(t, opts).Handler())
	defer server.Close()
	reused := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if info.Reused {
				reused++
			}
		},
	})
	requests := [][2]string{{"POST", "/-/reload"}, {"GET", "/debug/pprof/cmdline"}, {"GET", "/live/app"}, {"POST", "/-/reload"}, {"HEAD", "/live/app"}}
	for _, request := range requests {
		r, err := http.NewRequestWithContext(ctx, request[0], server.URL+request[1], http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%v: %s", request, resp.Status)
		}
	}
	if reused != len(requests)-1 {
		t.Errorf("the connection was used again %d times, want %d", reused, len(requests)-1)
	}
}

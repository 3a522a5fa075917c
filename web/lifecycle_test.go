// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//	http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.
package web

import (
	"context"
	"errors"
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

// Without the flag nothing can be changed, and a 403 tells nothing of what there is.
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

// With the flag each does what it says, and only when it is posted.
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

// A page of another site cannot use the lifecycle API through the browser of its
// reader; one at the external URL can.
func TestCrossOrigin(t *testing.T) {
	opts := options(mixed())
	opts.EnableLifecycle = true
	opts.ExternalURL = &url.URL{Scheme: "https", Host: "probes.example.org", Path: "/"}
	h := newServer(t, opts).Handler()
	for origin, want := range map[string]int{
		"https://evil.example.org":   http.StatusForbidden,
		"https://probes.example.org": http.StatusOK,
		"http://example.com":         http.StatusOK, // the host that httptest asks
	} {
		if w := do(h, http.MethodPost, "/-/reload", "Origin: "+origin); w.Code != want {
			t.Errorf("%s: %d, want %d", origin, w.Code, want)
		}
	}
	if w := do(h, http.MethodPost, "/-/reload", "Sec-Fetch-Site: cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("cross-site: %d", w.Code)
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

// Every response has 30 s; a reload has them from its end on; a profile takes as
// long as it takes.
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

// Deadlines of one request are gone with it: a connection serves one kind after the
// other.
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

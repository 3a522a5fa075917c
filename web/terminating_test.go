// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// terminate posts to both listeners from the address remote to the address local.
func terminate(t *testing.T, s *Server, remote, local string, header ...string) (code int, body string) {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", local)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Handler{s.HealthHandler(), s.Handler()} {
		r := httptest.NewRequest(http.MethodPost, "/-/terminating", http.NoBody)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
		r.RemoteAddr = remote
		for _, line := range header {
			key, value, _ := strings.Cut(line, ": ")
			r.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if code != 0 && code != w.Code {
			t.Errorf("%s: %d by one listener, %d by the other", remote, code, w.Code)
		}
		code, body = w.Code, w.Body.String()
	}
	return code, body
}

// Only a command beside the agent may say that the pod is terminating, as often as it likes. No
// other address may, nor a mesh that forwards requests from outside, nor a browser or a proxy
// on the same machine.
func TestWhoMayTerminate(t *testing.T) {
	for _, may := range [][2]string{
		{"127.0.0.1:40000", "127.0.0.1:9708"}, {"[::1]:40000", "[::1]:9708"}, {"[::ffff:127.0.0.1]:40000", "127.0.0.1:9708"}, {"127.0.0.1:40000", "127.0.0.2:9708"},
	} {
		f := mixed()
		s := newServer(t, options(f))
		if code, body := terminate(t, s, may[0], may[1]); code != 200 || body != "ok\n" || f.terminating != 2 {
			t.Errorf("%s: %d %q, told %d times", may, code, body, f.terminating)
		}
		if w := get(s.HealthHandler(), "/-/terminating"); w.Code != http.StatusMethodNotAllowed || f.terminating != 2 {
			t.Errorf("GET: %d", w.Code)
		}
	}
	f := mixed()
	s := newServer(t, options(f))
	for _, not := range [][2]string{
		{"192.0.2.1:40000", "192.0.2.2:9708"},                                        // another pod
		{"192.0.2.2:40000", "192.0.2.2:9708"},                                        // this pod, by its address
		{"127.0.0.6:40000", "192.0.2.2:9708"}, {"127.0.0.6:40000", "127.0.0.1:9708"}, // a mesh
		{"127.0.0.1:40000", "192.0.2.2:9708"}, {"192.0.2.1:40000", "127.0.0.1:9708"}, {"", "127.0.0.1:9708"}, {"host(2):1024", "127.0.0.1:9708"},
	} {
		if code, body := terminate(t, s, not[0], not[1]); code != 403 || !strings.HasPrefix(body, "Only a command") {
			t.Errorf("%s: %d %q", not, code, body)
		}
	}
	for _, header := range []string{
		"Origin: http://evil.example:9708", "Origin: null", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site",
		"Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy",
	} {
		if code, body := terminate(t, s, "127.0.0.1:40000", "127.0.0.1:9708", header); code != 403 || !strings.HasPrefix(body, "Browsers and proxies") {
			t.Errorf("%s: %d %q", header, code, body)
		}
	}
	if f.terminating != 0 {
		t.Errorf("told %d times", f.terminating)
	}
}

// While the pod terminates, every live check passes, and all other answers are the real state.
func TestTerminating(t *testing.T) {
	terminating, stopping, unloaded := mixed(), mixed(), &fake{unloaded: true, terminating: 1}
	terminating.terminating, stopping.terminating, stopping.stopping = 1, 1, true
	for _, test := range []struct {
		prober *fake
		path   string
		status int
		body   string
	}{
		{terminating, "/live", 200, "[?] pod terminating\nok\n"},
		{terminating, "/live?verbose", 200, "[?] pod terminating\nlive check passed\n"},
		{terminating, "/live/ill", 200, "[?] pod terminating\nok\n"},
		{terminating, "/live/nosuch", 200, "[?] pod terminating\nok\n"},
		{terminating, "/ready?exclude=db&exclude=slow&exclude=ill", 200, "ok\n"},
		{terminating, "/ready/app", 200, "ok\n"},
		{terminating, "/ready/db", 503, "[-]db failed: readiness: http_status (3/3)\nready check failed\n"},
		{terminating, "/started/app", 200, "ok\n"},
		{terminating, "/-/ready", 200, "ok\n"},
		{terminating, "/-/healthy", 200, "ok\n"},
		{stopping, "/live/ill", 200, "[?] agent stopping\nok\n"},
		{unloaded, "/live/app", 200, "[?] no configuration\nok\n"},
	} {
		expect(t, get(newServer(t, options(test.prober)).HealthHandler(), test.path), test.status, test.body)
	}
	page := get(newServer(t, options(terminating)).Handler(), "/").Body.String()
	if !strings.Contains(page, "The pod is terminating") {
		t.Errorf("the page does not say so:\n%s", page)
	}
	if page := get(newServer(t, options(stopping)).Handler(), "/").Body.String(); strings.Contains(page, "The pod is terminating") || !strings.Contains(page, "The agent is stopping") {
		t.Errorf("the page of an agent that stops:\n%s", page)
	}
}

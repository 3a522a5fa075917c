// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// withHeartbeats returns a prober of which worker takes beats, and so does its member queue.
func withHeartbeats() *fake {
	f := mixed()
	f.heartbeats = []string{"worker/", "worker/queue"}
	return f
}

// postBeat posts a beat from the address remote to the address local.
func postBeat(t *testing.T, h http.Handler, method, path, remote, local string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", local)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, http.NoBody)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
	r.RemoteAddr = remote
	for _, line := range header {
		key, value, _ := strings.Cut(line, ": ")
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here, agentHere = "127.0.0.1:40000", "127.0.0.1:9708"

// A beat from this machine is 204 on every listener, without a flag, under the prefix too, and in
// every state of the agent. A name without a probe for beats is 404. No other method is a beat.
func TestBeats(t *testing.T) {
	for name, prepare := range map[string]func(*fake){
		"as usual": func(*fake) {}, "not ready": func(f *fake) { f.unloaded = true },
		"stopping": func(f *fake) { f.stopping = true }, "terminating": func(f *fake) { f.terminating = 1 },
	} {
		f := withHeartbeats()
		prepare(f)
		opts := options(f)
		opts.RoutePrefix = "/probes"
		s := newServer(t, opts)
		for _, h := range []http.Handler{s.HealthHandler(), s.Handler()} {
			f.beats = nil
			for _, prefix := range []string{"", "/probes"} {
				expect(t, postBeat(t, h, "POST", prefix+"/heartbeat/worker", here, agentHere), 204, "")
				expect(t, postBeat(t, h, "POST", prefix+"/heartbeat/worker/queue", here, agentHere), 204, "")
			}
			if want := []string{"worker/", "worker/queue", "worker/", "worker/queue"}; !slices.Equal(f.beats, want) {
				t.Errorf("%s: beats of %q, want %q", name, f.beats, want)
			}
			f.beats = nil
			expect(t, postBeat(t, h, "POST", "/heartbeat/app", here, agentHere), 404,
				"There is no target app with a heartbeat probe that has no file.\n")
			expect(t, postBeat(t, h, "POST", "/heartbeat/worker/m%0Ail", here, agentHere), 404,
				"There is no heartbeat probe \"m\\nil\" without a file in target worker.\n")
			for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"} {
				if w := postBeat(t, h, method, "/heartbeat/worker", here, agentHere); w.Code != 405 || w.Header().Get("Allow") != "POST" {
					t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
				}
			}
			if f.beats != nil {
				t.Errorf("%s: beats of %q", name, f.beats)
			}
		}
	}
}

// The health listener takes beats from loopback addresses alone: not from another pod, not by the
// pod's own address, not from outside through a mesh, a proxy or a browser. Whoever may not beat
// does not learn which targets there are.
func TestWhoMayBeat(t *testing.T) {
	f := withHeartbeats()
	opts := options(f)
	opts.EnableLifecycle = true
	h := newServer(t, opts).HealthHandler()
	for _, may := range [][2]string{
		{here, agentHere}, {"[::1]:40000", "[::1]:9708"}, {"[::ffff:127.0.0.1]:40000", agentHere}, {"127.8.9.10:1", "127.0.0.2:9708"},
	} {
		expect(t, postBeat(t, h, "POST", "/heartbeat/worker", may[0], may[1]), 204, "")
	}
	f.beats = nil
	for _, not := range [][2]string{
		{"192.0.2.1:40000", "192.0.2.2:9708"},
		{"192.0.2.2:40000", "192.0.2.2:9708"},
		{"[2001:db8::1]:40000", "[2001:db8::2]:9708"},
		{"127.0.0.6:40000", agentHere},
		{"[::ffff:127.0.0.6]:40000", agentHere},
		{"192.0.2.1:40000", agentHere},
		{here, "192.0.2.2:9708"},
		{"", agentHere},
		{"@", agentHere},
	} {
		for _, path := range []string{"/heartbeat/worker", "/heartbeat/nobody"} {
			if w := postBeat(t, h, "POST", path, not[0], not[1]); w.Code != 403 || !strings.HasPrefix(w.Body.String(), "Only a client") {
				t.Errorf("%s to %s: %d %s", not[0], not[1], w.Code, w.Body)
			}
		}
	}
	for _, header := range []string{
		"Origin: http://localhost:9708", "Sec-Fetch-Site: same-origin", "Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy",
	} {
		if w := postBeat(t, h, "POST", "/heartbeat/worker", here, agentHere, header); w.Code != 403 || !strings.HasPrefix(w.Body.String(), "Browsers") {
			t.Errorf("%s: %d %s", header, w.Code, w.Body)
		}
	}
	if f.beats != nil {
		t.Errorf("beats of %q", f.beats)
	}
}

// The web listener takes beats from anywhere if the lifecycle API is enabled, by the rules of that
// API, and otherwise like a health listener.
func TestBeatsFromAnywhere(t *testing.T) {
	const there, agentThere = "192.0.2.1:40000", "192.0.2.2:9709"
	for enabled, want := range map[bool]int{false: 403, true: 204} {
		f := withHeartbeats()
		opts := options(f)
		opts.EnableLifecycle = enabled
		opts.ExternalURL = &url.URL{Scheme: "https", Host: "probes.example.org", Path: "/"}
		h := newServer(t, opts).Handler()
		if w := postBeat(t, h, "POST", "/heartbeat/worker/queue", there, agentThere); w.Code != want {
			t.Errorf("enabled %t: %d %s, want %d", enabled, w.Code, w.Body, want)
		}
		if w := postBeat(t, h, "POST", "/heartbeat/worker", there, agentThere, "Origin: https://probes.example.org"); w.Code != want {
			t.Errorf("a page of its own, enabled %t: %d %s, want %d", enabled, w.Code, w.Body, want)
		}
		f.beats = nil
		for _, from := range [][2]string{{there, agentThere}, {here, agentHere}} {
			if w := postBeat(t, h, "POST", "/heartbeat/worker", from[0], from[1], "Origin: http://evil.example"); w.Code != 403 {
				t.Errorf("a page of another site: %d %s", w.Code, w.Body)
			}
		}
		if f.beats != nil {
			t.Errorf("beats of %q", f.beats)
		}
	}
}

// A client needs no more than a socket: HTTP/1.0 will do. A body is not waited for, nor read.
func TestBeatsOfSimpleClients(t *testing.T) {
	f := withHeartbeats()
	server := httptest.NewUnstartedServer(newServer(t, options(f)).HealthHandler())
	server.Config.SetKeepAlivesEnabled(false) // as on a health listener
	server.Start()
	defer server.Close()
	for _, request := range []string{
		"POST /heartbeat/worker HTTP/1.0\r\n\r\n",
		"POST /heartbeat/worker HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		"POST /heartbeat/worker HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegun",
		"POST /heartbeat/worker HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /heartbeat/worker HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.beats = nil
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, request)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", request, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		conn.Close()
		if resp.StatusCode != 204 || len(body) > 0 || err != nil || len(f.beats) != 1 {
			t.Errorf("%q: %s, body %q, error %v, beats of %q", request, resp.Status, body, err, f.beats)
		}
	}
}

// No path may hide the endpoint.
func TestHeartbeatPathIsTaken(t *testing.T) {
	for _, set := range []func(*Options){
		func(o *Options) { o.TelemetryPath = "/heartbeat" }, func(o *Options) { o.RoutePrefix = "/heartbeat/x" },
	} {
		opts := options(mixed())
		set(&opts)
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), "/heartbeat is taken") {
			t.Errorf("got error %v", err)
		}
	}
}

// discard is a response of which nobody reads anything.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkBeat is the work of the handlers for one beat.
func BenchmarkBeat(b *testing.B) {
	f := withHeartbeats()
	h := newServer(b, options(f)).HealthHandler()
	r := httptest.NewRequest(http.MethodPost, "/heartbeat/worker", http.NoBody)
	at := net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9708})
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
	r.RemoteAddr = here
	b.ReportAllocs()
	for b.Loop() {
		f.beats = f.beats[:0]
		h.ServeHTTP(discard{http.Header{}}, r)
		if len(f.beats) != 1 {
			b.Fatal("no beat")
		}
	}
}

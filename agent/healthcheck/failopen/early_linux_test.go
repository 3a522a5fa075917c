// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

const flag = "--health.check.fail-open"

// Early accepts only a plain loopback URL and the flags of the client, in any order.
func TestPlainArgs(t *testing.T) {
	for arg, want := range map[string]string{
		"--health.check=http://127.0.0.1:9708/live/app":           "127.0.0.1:9708 /live/app",
		"--health.check=http://[::1]:1/":                          "[::1]:1 /",
		"--health.check=http://127.0.0.1:65535/live?target=a&x=b": "127.0.0.1:65535 /live?target=a&x=b",
	} {
		for _, args := range [][]string{{arg, flag}, {flag, arg}} {
			if to, ok := plainArgs(args); !ok || to.host+" "+to.path != want {
				t.Errorf("%q: %+v, %t", args, to, ok)
			}
		}
	}
	for _, args := range [][]string{
		{},
		{flag},
		{flag, flag},
		{"--health.check=http://127.0.0.1:9708/live/app"},
		{"--health.check=http://127.0.0.1:9708/live/app", flag, "--log.level=debug"},
		{"--health.check=http://127.0.0.1:9708/live/app", "--health.check.wait=1s"},
		{"--health.check=http://127.0.0.1:9708/live/app", "--no-health.check.fail-open"},
		{"x--health.check=http://127.0.0.1:9708/live/app", flag},
		{"--health.check=http://127.0.0.1:9708", flag},
		{"--health.check=http://127.0.0.1/live/app", flag},
		{"--health.check=http://127.0.0.1:/live/app", flag},
		{"--health.check=http://127.0.0.1:0/live/app", flag},
		{"--health.check=http://127.0.0.1:65536/live/app", flag},
		{"--health.check=http://127.0.0.1:99999999999999999999999/live/app", flag},
		{"--health.check=http://127.0.0.1:+1/live/app", flag},
		{"--health.check=http://127.0.0.1:9708:1/live/app", flag},
		{"--health.check=http://user@127.0.0.1:9708/live/app", flag},
		{"--health.check=http://[::1]/live/app", flag},
		{"--health.check=http://localhost:9708/live/app", flag},
		{"--health.check=http://192.0.2.1:9708/live/app", flag},
		{"--health.check=https://127.0.0.1:9708/live/app", flag},
		{"--health.check=http://127.0.0.1:9708/live/a b", flag},
		{"--health.check=http://127.0.0.1:9708/live/a\r\nX: y", flag},
		{"--health.check=http://127.0.0.1:9708/live/%61", flag},
		{"--health.check=http://127.0.0.1:9708/live#app", flag},
		{"--health.check=http://127.0.0.1:9708/live/ä", flag},
	} {
		if to, ok := plainArgs(args); ok {
			t.Errorf("%q: %+v", args, to)
		}
	}
}

// early runs the client as main does.
func early(t *testing.T, url string, patience time.Duration) (code int, done bool, stdout, stderr string) {
	t.Helper()
	var out, said strings.Builder
	code, done = Early([]string{"--health.check=" + url, flag}, func() time.Duration { return patience }, &out, &said)
	return code, done, out.String(), said.String()
}

const verdict = "[-]app failed: liveness: http_status (3/3)\nlive check failed\n"

// Early judges a plain answer, over IPv4 and IPv6, and leaves any other answer to main.
func TestEarly(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, c := range []struct {
			name    string
			handler http.HandlerFunc
			done    bool
			code    int
			stdout  string
			stderr  string
		}{
			{"ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }, true, 0, "ok\n", ""},
			{"verdict", answers(503, verdict), true, 1, verdict, ""},
			{"proxy", answers(503, "no healthy upstream"), true, 0, "", "is not an agent's verdict"},
			{"unknown", answers(404, "[-]app unknown target\nready check failed\n"), true, 0, "", "has status 404"},
			{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, true, 0, "", "has status 302"},
			{"empty", answers(503, ""), true, 0, "", "is not an agent's verdict"},
			{"chunked", func(w http.ResponseWriter, r *http.Request) {
				answers(503, "[-]app ")(w, r)
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, verdict)
			}, false, 0, "", ""},
			{"long", answers(503, strings.Repeat(verdict, 1000)), false, 0, "", ""},
			{"broken", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1000")
				answers(503, verdict)(w, r)
			}, false, 0, "", ""},
			{"closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, 0, "", ""},
		} {
			server := &httptest.Server{Listener: testutil.Listen(t, "tcp", address, false), Config: &http.Server{Handler: c.handler, ReadHeaderTimeout: time.Minute}}
			server.Start()
			code, done, stdout, stderr := early(t, server.URL+"/live/app", time.Minute)
			server.Close()
			if done != c.done || code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
				t.Errorf("%s: done %t, exit %d, printed %q, said %q", c.name, done, code, stdout, stderr)
			}
		}
	}
}

// answers returns a handler with one answer.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// The agent takes the client's question for a kubelet's, because the client runs in a container.
func TestEarlyUserAgent(t *testing.T) {
	asked := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
	defer server.Close()
	_, _, _, _ = early(t, server.URL+"/live/app", time.Minute)
	if got := testutil.Receive(t, asked, "a question").Get("User-Agent"); got != UserAgent {
		t.Errorf("the client calls itself %q", got)
	}
}

// If nobody listens, the check passes at once.
func TestEarlyRefused(t *testing.T) {
	code, done, stdout, stderr := early(t, "http://127.0.0.1:"+testutil.Port(t)+"/live/app", time.Minute)
	if !done || code != 0 || stdout != "" || !strings.Contains(stderr, "connection refused") {
		t.Errorf("done %t, exit %d, printed %q, said %q", done, code, stdout, stderr)
	}
}

// A verdict that comes too late, or byte by byte, does not fail the check.
func TestEarlyLate(t *testing.T) {
	gone := make(chan struct{})
	for name, handler := range map[string]http.HandlerFunc{
		"silent": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // the client has closed the connection
			answers(503, verdict)(w, r)
		},
		"slow": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(verdict)))
			w.WriteHeader(503)
			for i := 0; r.Context().Err() == nil && i < len(verdict)-1; i++ {
				_, _ = io.WriteString(w, verdict[i:i+1])
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			gone <- struct{}{}
		},
	} {
		server := httptest.NewServer(handler)
		begin := time.Now()
		code, done, stdout, stderr := early(t, server.URL+"/live/app", askTime)
		if took := time.Since(begin); took < askTime || !done || code != 0 || stdout != "" || !strings.Contains(stderr, "no answer in time: waited 1s") {
			t.Errorf("%s: took %v, done %t, exit %d, printed %q, said %q", name, took, done, code, stdout, stderr)
		}
		if name == "slow" {
			testutil.Receive(t, gone, "the client has closed the connection")
		}
		server.CloseClientConnections()
		server.Close()
	}
}

// A process that took too long to start asks nobody.
func TestEarlyTooLate(t *testing.T) {
	to, _ := plainArgs([]string{"--health.check=http://127.0.0.1:" + testutil.Port(t) + "/", flag})
	a, done := to.ask(0)
	if !done || a.Problem != Late(0) {
		t.Errorf("done %t, %+v", done, a)
	}
}

// The client waits for a second at most, and for less if its process is old already.
func TestAge(t *testing.T) {
	stat := func(name string, ticks int) string {
		return fmt.Sprintf("17 (%s) R 1 17 17 0 -1 4194304 100 0 0 0 2 1 0 0 20 0 5 0 %d 1000000 300 18446744073709551615\n", name, ticks)
	}
	for _, c := range []struct {
		stat   string
		uptime time.Duration
		want   time.Duration
	}{
		{stat("x", 1000), 10 * time.Second, 0},
		{stat("x", 1000), 13 * time.Second, 3 * time.Second},
		{stat("a) b (c", 1025), 13 * time.Second, 2750 * time.Millisecond},
		{stat("x", 1000), 9 * time.Second, 0},
		{stat("x", 1000), 71 * time.Second, 0}, // another clock
		{"", time.Minute, 0},
		{"17 (x) R", time.Minute, 0},
	} {
		if got := ageAt(c.stat, c.uptime); got != c.want {
			t.Errorf("%q at %v: %v, want %v", c.stat, c.uptime, got, c.want)
		}
	}
	before := time.Since(begun)
	got := age()
	if after := time.Since(begun); after < 50*time.Second && (got < before || got > after+10*time.Second) {
		t.Errorf("this process is %v to %v old, age returns %v", before, after, got)
	}
	if left := Patience(); left > askTime || left > wholeTime-before && before < 50*time.Second {
		t.Errorf("a process that is %v old waits for %v", before, left)
	}
}

// begun is about when this process began.
var begun = time.Now()

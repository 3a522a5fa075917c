// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package httpget

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// onSocket serves h on a Unix socket and returns the host of a probe.
func onSocket(t *testing.T, h http.Handler, encrypted bool) string {
	t.Helper()
	l := actiontest.ListenUnix(t, actiontest.Socket(t))
	actiontest.WebServerOn(t, l, h, actiontest.Protocols((*http.Protocols).SetHTTP1), encrypted)
	return actiontest.Address(l)
}

// Over a Unix socket a server sees the request that it would see over TCP, for the host localhost
// unless a header says otherwise.
func TestSocketRequest(t *testing.T) {
	for _, scheme := range []string{"HTTP", "HTTPS"} {
		address := onSocket(t, actiontest.Site(), scheme == "HTTPS")
		for want, headers := range map[string][]config.Header{"localhost": nil, "app.example.org": {{Name: "Host", Value: "app.example.org"}}} {
			got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/a?b=c", Scheme: scheme, Headers: headers}))
			want = "GET|" + want + "|/a?b=c|HTTP/1.1|map[Accept:[*/*] Connection:[close] User-Agent:[kube-probe/1.37]]"
			if !got.Success || got.Output != want {
				t.Errorf("%s: got %+v, want %s", scheme, got, want)
			}
		}
	}
}

// A probe of a Unix socket follows a redirect that stays on its host. A redirect to a port, to the
// other scheme or to another host leaves the socket, and is the answer.
func TestSocketRedirects(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/go", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.FormValue("to"), http.StatusFound) })
	mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "end of ", r.Host) })
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	address := onSocket(t, mux, false)
	host := []config.Header{{Name: "Host", Value: "app.example.org"}}
	for _, c := range []struct {
		to       string
		headers  []config.Header
		followed bool
		output   string
	}{
		{"/end", nil, true, "end of localhost"},
		{"/end", host, true, "end of app.example.org"},
		{"http://localhost/end", nil, true, "end of localhost"},
		{"http://localhost:80/end", nil, false, ""},
		{"https://localhost/end", nil, false, ""},
		{"http://127.0.0.1/end", nil, false, ""},
		{"http://app.example.org/end", host, false, ""},
	} {
		got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/go?to=" + c.to, Headers: c.headers}))
		if !got.Success || got.Warning == c.followed || c.followed && got.Output != c.output {
			t.Errorf("%s: got %+v", c.to, got)
		}
	}
	got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/go?to=/bad"}))
	if got.Reason != action.HTTPStatus || got.Address != "http://localhost/bad over "+address {
		t.Errorf("got %+v", got)
	}
}

// An answer that breaks off, and one that does not come, count as over TCP.
func TestSocketBadAnswers(t *testing.T) {
	address := onSocket(t, actiontest.Site(), false)
	for path, want := range map[string]action.Reason{"/reset": action.ConnectionReset, "/slowbody": action.Timeout, "/slow": action.Timeout} {
		got, err := actiontest.Tried(t, httpProbe(address, 100*time.Millisecond, config.HTTPGet{Path: path}))
		if got.Reason != want || (err != nil) != (path != "/slow") {
			t.Errorf("%s: got %+v, error %v", path, got, err)
		}
	}
	long := onSocket(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("a", 20<<10)) }), false)
	if got := actiontest.Attempt(t, httpProbe(long, 10*time.Second, config.HTTPGet{Path: "/"})); len(got.Output) != action.MaxOutput {
		t.Errorf("%d bytes of the body", len(got.Output))
	}
}

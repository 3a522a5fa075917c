// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// A failure has the beginning of the body, without passwords in URLs, and the address that
// a redirect has led to; the output is the kubelet's.
func TestFailureTellsMore(t *testing.T) {
	const kubelet = "HTTP probe failed with statuscode: 500"
	long := strings.Repeat("x", maxBody) + "y"
	address := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/from":
			http.Redirect(w, r, "//user:pass@"+r.Host+"/to?a=b", http.StatusFound)
		case "/long":
			w.WriteHeader(500)
			io.WriteString(w, long)
		case "/well":
			io.WriteString(w, "well")
		default:
			w.WriteHeader(500)
			io.WriteString(w, "no database at postgres://shop:hunter2@db/shop\n")
		}
	}))
	for path, want := range map[string]Outcome{
		"/x":    {Reason: HTTPStatus, Output: kubelet, Body: "no database at postgres://shop:***@db/shop\n"},
		"/from": {Reason: HTTPStatus, Output: kubelet, Body: "no database at postgres://shop:***@db/shop\n", Address: "http://<redacted>@" + address + "/to?a=b"},
		"/long": {Reason: HTTPStatus, Output: kubelet, Body: long[:maxBody]},
		"/well": {Success: true, Output: "well"},
	} {
		if got := attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: path})); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// What a probe asks is told without what is secret of it.
func TestAddress(t *testing.T) {
	target := &config.Target{Host: "::1"}
	port := config.PortRef{Number: 8080}
	for want, p := range map[string]*config.Probe{
		"http://[::1]:8080/healthz?a=b":      {HTTPGet: &config.HTTPGet{Path: "/healthz?a=b", Port: port, Scheme: "HTTP"}},
		"https://shop:8080/%2F":              {HTTPGet: &config.HTTPGet{Path: "/%2F", Port: port, Scheme: "HTTPS", Host: "shop"}},
		"http://<redacted>@[::1]:8080/x%20y": {HTTPGet: &config.HTTPGet{Path: "http://user:pass@h/x y", Port: port, Scheme: "HTTP"}},
		"http://<redacted>@[::1]:8080/":      {HTTPGet: &config.HTTPGet{Path: "//token@h/", Port: port}},
		"[::1]:8080":                         {TCPSocket: &config.TCPSocket{Port: port}},
		"db:8080":                            {TCPSocket: &config.TCPSocket{Port: port, Host: "db"}},
		"[::1]:9000":                         {GRPC: &config.GRPC{Port: 9000}},
		"":                                   {Exec: &config.Exec{Command: []string{"true"}}},
	} {
		if got := Address(target, p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/prober"
)

// A client that accepts JSON gets the same answer as JSON.
func TestJSON(t *testing.T) {
	unhealthy := mixed()
	unhealthy.overdue = []string{"app/liveness"}
	tests := []struct {
		prober *fake
		path   string
		status int
		body   string
	}{
		{&fake{statuses: []prober.TargetStatus{well("app")}}, "/ready", 200, `{"check":"ready","ok":true,"targets":[]}`},
		{&fake{statuses: []prober.TargetStatus{well("app")}}, "/ready?verbose", 200, `{"check":"ready","ok":true,"targets":[{"name":"app","ok":true}]}`},
		{&fake{statuses: []prober.TargetStatus{unready("db")}}, "/ready", 503, `{"check":"ready","ok":false,"targets":[{"name":"db","ok":false,"kind":"readiness","reason":"http_status","failures":3,"threshold":3}]}`},
		{mixed(), "/ready/nosuch%22%3Cx%3E", 404, `{"check":"ready","ok":false,"reason":"\"nosuch\\\"\u003cx\u003e\" unknown target","targets":[]}`},
		{mixed(), "/live/nosuch", 200, `{"check":"live","ok":true,"targets":[],"warnings":["nosuch unknown target: not probed"]}`},
		{mixed(), "/live?exclude=ill&exclude=nosuch", 200, `{"check":"live","ok":true,"targets":[],"warnings":["nosuch unknown target"]}`},
		{&fake{unloaded: true}, "/live", 200, `{"check":"live","ok":true,"targets":[],"warnings":["no configuration"]}`},
		{&fake{unloaded: true}, "/ready", 503, `{"check":"ready","ok":false,"reason":"no configuration","targets":[]}`},
		{&fake{removed: map[string]bool{"app": true}}, "/live/app", 200, `{"check":"live","ok":true,"targets":[],"warnings":["app removed: not probed"]}`},
		{unhealthy, "/-/healthy", 503, `{"check":"agent healthy","ok":false,"targets":[{"name":"app","ok":false,"kind":"liveness","reason":"overdue"}]}`},
		{mixed(), "/-/ready", 200, `{"check":"agent ready","ok":true,"targets":[]}`},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			w := get(newServer(t, options(test.prober)).HealthHandler(), test.path, "Accept: application/json")
			expect(t, w, test.status, test.body+"\n")
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

// A client that does not name JSON gets text.
func TestAccept(t *testing.T) {
	h := newServer(t, options(&fake{})).HealthHandler()
	for accept, json := range map[string]bool{
		"":                                     false,
		"*/*":                                  false,
		"text/plain":                           false,
		"application/json":                     true,
		"Application/JSON; charset=utf-8":      true,
		"text/html, application/json;q=0.5":    true,
		"application/json;q=0, */*":            false,
		"application/jsonx":                    false,
		";;;, application/json;=":              false,
		strings.Repeat(",", 10_000):            false,
		"application/vnd.api+json, text/plain": false,
	} {
		w := get(h, "/ready", "Accept: "+accept)
		if got := strings.HasPrefix(w.Body.String(), "{"); got != json {
			t.Errorf("%q: JSON %t, want %t", accept, got, json)
		}
	}
}

// A 503 lists at most a hundred targets and counts the rest; a verbose 503 lists them all.
func TestMany(t *testing.T) {
	f := &fake{statuses: append(many(250, unready), well("app"))}
	h := newServer(t, options(f)).HealthHandler()
	lines := func(path string) []string {
		w := get(h, path)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, w.Code)
		}
		return strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	}
	if got := lines("/ready"); len(got) != 102 || got[100] != "… and 150 more" || got[101] != "ready check failed" {
		t.Errorf("%d lines, the last: %q", len(got), got[len(got)-2:])
	}
	if got := lines("/ready?verbose"); len(got) != 252 || got[250] != "[+]app ok" {
		t.Errorf("verbose: %d lines, the last: %q", len(got), got[len(got)-2:])
	}
	if body := get(h, "/ready", "Accept: application/json").Body.String(); strings.Count(body, `"name"`) != 100 || !strings.Contains(body, `"more":150`) {
		t.Errorf("JSON: %s", body)
	}
	for range 150 {
		f.overdue = append(f.overdue, "x/readiness")
	}
	if got := lines("/-/healthy"); len(got) != 102 {
		t.Errorf("healthy: %d lines", len(got))
	}
	if got := lines("/-/healthy?verbose"); len(got) != 151 {
		t.Errorf("healthy, verbose: %d lines", len(got))
	}
}

// Ten thousand unknown names do not come back as ten thousand warnings.
func TestManyUnknown(t *testing.T) {
	query := url.Values{}
	for i := range 10_000 {
		query.Add("target", fmt.Sprintf("n%d", i))
	}
	w := get(newServer(t, options(&fake{})).HealthHandler(), "/ready?"+query.Encode())
	if w.Code != http.StatusOK || !strings.HasSuffix(w.Body.String(), "[?] … and 9900 more\nok\n") {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

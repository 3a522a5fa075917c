// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// Get returns the status and the body of a URL. The status is 0 if there is no answer, and
// the body then says why.
func Get(t testing.TB, url string) (status int, body string) {
	t.Helper()
	return Do(t, http.MethodGet, url)
}

// Do is Get with another method.
func Do(t testing.TB, method, url string) (status int, body string) {
	t.Helper()
	// Clean-ups ask, too, after the end of the test's context.
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// Series returns the value of a series in an answer of /metrics, or "" if there is no such
// series.
func Series(metrics, series string) string {
	for line := range strings.Lines(metrics) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

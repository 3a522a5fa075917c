// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// get returns the status and the body of a URL.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	return do(t, http.MethodGet, url)
}

func do(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// says waits until a URL answers with that status and, somewhere, that text.
func (a *agent) says(url string, status int, text string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("%s answers %d %q", url, status, text), func() error {
		got, body := get(a.t, url)
		if got != status || !strings.Contains(body, text) {
			return fmt.Errorf("%d %s\n%s", got, body, a.log)
		}
		return nil
	})
}

// is checks what a URL answers now.
func (a *agent) is(url string, status int, text string) {
	a.t.Helper()
	if got, body := get(a.t, url); got != status || !strings.Contains(body, text) {
		a.t.Errorf("%s answers %d %q, want %d %q", url, got, body, status, text)
	}
}

// logs waits until the log has a line with all of these words.
func (a *agent) logs(words ...string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("a line with %q in the log", words), func() error {
		for line := range strings.Lines(a.log.String()) {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return nil
			}
		}
		return fmt.Errorf("the log is\n%s", a.log)
	})
}

// metric returns the value of a series, "" if there is none.
func metric(t *testing.T, a *agent, series string) string {
	t.Helper()
	_, body := get(t, a.web+"/metrics")
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// App is a real server for probes. Its paths answer 200 unless the test sets something else.
type App struct {
	*httptest.Server
	Port    string
	Broken  atomic.Bool
	Asked   atomic.Int64
	Headers sync.Map // the last headers by path
}

// NewApp returns an app that serves until the test ends.
func NewApp(t testing.TB) *App {
	t.Helper()
	a := &App{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Asked.Add(1)
		a.Headers.Store(r.URL.Path, r.Header)
		if a.Broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, "body")
	}))
	t.Cleanup(a.Close)
	_, a.Port, _ = net.SplitHostPort(a.Listener.Addr().String())
	return a
}

// Target returns a target with a readiness and a liveness probe of the app, ten times a second.
func (a *App) Target(name string, more ...string) string {
	return fmt.Sprintf(`
  - name: %s
    readinessProbe: {httpGet: {port: %s, path: /ready}, periodSeconds: 0.1, failureThreshold: 1}
    livenessProbe: {httpGet: {port: %s, path: /live}, periodSeconds: 0.1, failureThreshold: 2}
%s`, name, a.Port, a.Port, strings.Join(more, "\n"))
}

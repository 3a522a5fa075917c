// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober"
)

// With real probes of a real application, over TLS on loopback: the verdict is a patch, and so
// is the recovery. The first failure of a run is an event without the secret in its output,
// also where it changes no result.
func TestRealProbes(t *testing.T) {
	var unready atomic.Bool
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if unready.Load() {
			http.Redirect(w, r, "http://127.0.0.1:1/?token="+r.Header.Get("Token"), http.StatusMovedPermanently)
		}
	}))
	defer app.Close()
	at, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load("prober.yml", []byte(`kubernetes:
  podConditions: [{type: `+shopReady+`, targets: [shop]}]
  events: true
targets:
  - name: shop
    readinessProbe:
      httpGet: {port: `+at.Port()+`, httpHeaders: [{name: Token, value: tell-nobody-of-it}]}
      periodSeconds: 0.2
      failureThreshold: 2
  - name: patient
    livenessProbe:
      httpGet: {port: `+at.Port()+`, httpHeaders: [{name: Token, value: tell-nobody-of-it}]}
      periodSeconds: 0.2
      failureThreshold: 1000000
`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s := apitest.NewServer(t)
	manager := prober.New(prober.Options{})
	defer manager.Close()
	pod := kubernetes.NewFollower(apitest.NewPod(t, s).Env(), kubernetes.DefaultPace(), slog.New(slog.DiscardHandler))
	w := New(Options{Prober: manager, Pod: pod, Logger: slog.New(slog.DiscardHandler)})
	defer w.Close()
	if err := manager.Apply(cfg); err != nil {
		t.Fatal(err)
	}
	w.Apply(cfg)
	s.Next(t, "get").Answer(200, podWith())
	s.Next(t, "10").Open()
	takes := func(c *apitest.Call, want string) {
		t.Helper()
		if !strings.Contains(c.Body, want) {
			t.Errorf("patched %s, want %s", c.Body, want)
		}
		c.Answer(200, podWith(strings.TrimSuffix(strings.TrimPrefix(c.Body[strings.Index(c.Body, "[")+1:], ""), "]}}")))
	}
	takes(s.Next(t, "patch"), `"status":"True","reason":"ProbesSucceeding"`)
	unready.Store(true)
	patched, told := false, ""
	for !patched || !strings.Contains(told, "Readiness probe failed: shop: ") || !strings.Contains(told, "Liveness probe failed: patient: ") {
		c := testutil.Receive(t, s.Calls, "an event and a patch")
		if asks := c.Asks(); asks == "patch" {
			patched = true
			takes(c, `"status":"False","reason":"ProbesFailing","message":"shop: readiness: connection_refused (2/2)"`)
			continue
		}
		told += c.Body
		c.Answer(200, "{}")
	}
	if strings.Contains(told, "tell-nobody") {
		t.Errorf("the events are %s", told)
	}
	unready.Store(false)
	for {
		c := testutil.Receive(t, s.Calls, "a patch")
		if c.Asks() == "patch" {
			takes(c, `"status":"True","reason":"ProbesSucceeding"`)
			return
		}
		c.Answer(200, "{}")
	}
}

// A source of the prober and the Writer share one look and one watch, and each is told of what
// the watch shows.
func TestOneWatch(t *testing.T) {
	cfg, _, err := config.Load("prober.yml", []byte(`kubernetes: {podConditions: [{type: `+shopReady+`}]}
targets:
  - name: shop
    instance: {source: kubernetes, container: app}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 0.1}
`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s := apitest.NewServer(t)
	pod := kubernetes.NewFollower(apitest.NewPod(t, s).Env(), kubernetes.DefaultPace(), slog.New(slog.DiscardHandler))
	manager := prober.New(prober.Options{Pod: pod})
	defer manager.Close()
	w := New(Options{Prober: manager, Pod: pod, Logger: slog.New(slog.DiscardHandler)})
	defer w.Close()
	if err := manager.Apply(cfg); err != nil {
		t.Fatal(err)
	}
	w.Apply(cfg)
	runs := strings.Replace(podWith(), `"phase"`, `"containerStatuses":[{"name":"app","containerID":"c://1","state":{"running":{"startedAt":"2026-11-21T12:00:00Z"}}}],"phase"`, 1)
	s.Next(t, "get").Answer(200, runs)
	watch := s.Next(t, "10").Open()
	c := s.Next(t, "patch") // the target runs, and is ready
	if !strings.Contains(c.Body, `"status":"True"`) {
		t.Errorf("patched %s", c.Body)
	}
	c.Answer(200, runs)
	watch.Event("MODIFIED", strings.Replace(runs, `"running":{"startedAt":"2026-11-21T12:00:00Z"}`, `"terminated":{"exitCode":1}`, 1))
	c = s.Next(t, "patch")
	if !strings.Contains(c.Body, `"reason":"TargetsNotRunning","message":"shop: not running"`) {
		t.Errorf("patched %s", c.Body)
	}
	c.Answer(200, runs)
}

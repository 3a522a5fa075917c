// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// app is an application that is ready or not, with secrets in what it says.
type app struct {
	port    string
	unready atomic.Bool
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := new(app)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.unready.Load() && r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	a.port = at.Port()
	return a
}

// file returns a configuration for the application.
func (a *app) file() string {
	return `kubernetes:
  podConditions:
    - type: ` + gateType + `
  events: true
targets:
  - name: app
    readinessProbe:
      httpGet: {path: /readyz, port: ` + a.port + `}
      periodSeconds: 0.1
      failureThreshold: 3
    livenessProbe:
      httpGet: {path: /healthz, port: ` + a.port + `}
      periodSeconds: 0.1
`
}

// events returns those of the pod: "TYPE REASON ×COUNT MESSAGE".
func (g *gated) events() (all []string) {
	g.t.Helper()
	var list struct {
		Items []struct {
			Type, Reason, Message string
			Count                 int
			Source                struct{ Component, Host string }
			InvolvedObject        struct{ UID string }
		}
	}
	if err := json.Unmarshal([]byte(g.must("GET", g.core("events"), "")), &list); err != nil {
		g.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Source.Component != "prober_exporter" || e.Source.Host != "node-1" || e.InvolvedObject.UID != g.uid {
			g.t.Errorf("an event of another: %+v", e)
		}
		all = append(all, fmt.Sprintf("%s %s ×%d %s", e.Type, e.Reason, e.Count, e.Message))
	}
	return all
}

// writes is the series of the writes of conditions that succeeded.
const writes = `prober_exporter_kubernetes_writes_total{object="condition",result="succeeded"} `

// The shipped program writes its condition when the application changes and when somebody
// else has changed it; a killed agent leaves its last word; the next one begins with no word
// that differs; and a stopped one says so.
func TestGateCondition(t *testing.T) {
	g, a := newGate(t), newApp(t)
	s := ship(t, a.file())
	ready := g.becomes("True", "ProbesSucceeding")
	if age := time.Since(ready.LastTransitionTime); age < 0 || age > time.Minute || ready.Message != "" {
		t.Errorf("the first condition is %+v", ready)
	}
	s.shows(`prober_exporter_kubernetes_synced 1`, writes+"1")

	a.unready.Store(true)
	s.says("/ready/app", 503)
	verdict := time.Now()
	unready := g.becomes("False", "ProbesFailing")
	t.Logf("the verdict is at the API server after %v at most", time.Since(verdict).Round(time.Millisecond))
	if unready.Message != "app: readiness: http_status (3/3)" {
		t.Errorf("the message is %q", unready.Message)
	}
	var events []string
	testutil.Within(t, time.Minute, "the event is counted twice", func() bool {
		events = g.events()
		return len(events) == 1 && events[0] == "Warning Unhealthy ×2 Readiness probe failed: app: HTTP probe failed with statuscode: 500"
	})

	g.must("PATCH", g.core("pods/shop/status"), `{"status":{"conditions":[]}}`) // a merge patch: none are left
	if again := g.becomes("False", "ProbesFailing"); !again.LastTransitionTime.Equal(unready.LastTransitionTime) {
		t.Errorf("the condition that was removed began at %v, now at %v", unready.LastTransitionTime, again.LastTransitionTime)
	}
	a.unready.Store(false)
	ready = g.becomes("True", "ProbesSucceeding")

	s.end(syscall.SIGKILL)
	if c := g.condition(); c != ready {
		t.Errorf("a killed agent leaves %+v, want %+v", c, ready)
	}
	s = ship(t, a.file())
	s.shows(`prober_target_ready{target="app"} 1`, writes+"0")
	a.unready.Store(true)
	g.becomes("False", "ProbesFailing")
	s.shows(writes + "1") // so there was none before
	a.unready.Store(false)
	g.becomes("True", "ProbesSucceeding")
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if c := g.condition(); c.Status != "False" || c.Reason != "AgentStopping" {
		t.Errorf("a stopped agent leaves %+v", c)
	}
}

// While the pod is being deleted a stopping agent has no last word. A pod of the same name is
// another pod: the agent of the one before does not touch it, and neither does its patch.
func TestGateDeletion(t *testing.T) {
	g, a := newGate(t), newApp(t)
	s := ship(t, a.file())
	ready := g.becomes("True", "ProbesSucceeding")
	g.must("DELETE", g.core("pods/shop"), `{"gracePeriodSeconds":30}`)
	a.unready.Store(true)
	unready := g.becomes("False", "ProbesFailing") // the watch shows the deletion before the answer to that patch
	s.end(syscall.SIGTERM)
	if c := g.condition(); c != unready {
		t.Errorf("after SIGTERM the condition of a deleted pod is %+v, want %+v; it was %+v", c, unready, ready)
	}

	s = ship(t, a.file())
	a.unready.Store(false)
	g.becomes("True", "ProbesSucceeding")
	g.line.cut()
	g.must("DELETE", g.core("pods/shop"), `{"gracePeriodSeconds":0}`)
	all := g.example()
	g.create(all[len(all)-1])
	theirs := between(g.must("GET", g.core("pods/shop"), ""), `"uid":"`, `"`)
	g.file("token", g.accountToken("shop-prober", "Pod", "shop", theirs)) // that of the pod before is void
	a.unready.Store(true)
	s.shows(`prober_target_ready{target="app"} 0`, `prober_exporter_kubernetes_synced 0`)
	code, answer := g.patch(kube.admin, "shop", strings.Replace(ofTheAgent, `{"status"`, `{"metadata":{"uid":"`+g.uid+`"},"status"`, 1))
	if code/100 == 2 {
		t.Errorf("a patch for the UID of the pod before: %d %s", code, answer)
	}
	t.Logf("a patch with another UID is answered %d %s", code, answer)
	g.line.mend()
	s.shows(`prober_exporter_kubernetes_synced 1`)
	s.end(syscall.SIGTERM)
	if c := g.condition(); c != (condition{}) {
		t.Errorf("the new pod has %+v", c)
	}
	if !strings.Contains(s.log.String(), "the pod is gone") {
		t.Errorf("the log does not say that the pod is gone")
	}
}

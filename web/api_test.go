// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// rich returns a target with something in every field.
func rich() prober.TargetStatus {
	// The zone is not UTC, in which the API answers.
	at := time.Date(2026, 1, 2, 4, 4, 5, 678_000_000, time.FixedZone("", 3600))
	t := well("app")
	t.Labels = []config.Label{{Name: "team", Value: `pay"ments`}}
	t.Instance.StartedAt, t.Instance.Final, t.Instance.Deleting = at, true, true
	t.Changed = prober.Changed{Started: at, Ready: at.Add(time.Second), Live: at.Add(-time.Hour)}
	t.Restarts, t.StartupDuration = 2, 1500*time.Millisecond
	p := failing(gate.Readiness, action.HTTPStatus, 5)
	p.InitialDelay, p.Timeout, p.Last, p.Run = 250*time.Millisecond, 1500*time.Millisecond, gate.Failure, 5
	p.Held, p.Gated = true, true
	p.Successful, p.Failed, p.Unknown, p.Transitions = 10, 6, 1, 3
	p.Failures = []prober.ReasonCount{{Reason: action.HTTPStatus, Count: 6}, {Reason: action.AgentLate, Count: 1}}
	p.LastRun, p.NextTurn = at.Add(time.Minute), at.Add(70*time.Second)
	p.CertExpires = at.Add(24 * time.Hour).Truncate(time.Second)
	p.Changed, p.HeldUntil, p.Address = at.Add(time.Minute), at.Add(2*time.Minute), "http://127.0.0.1:80/?a=<b>"
	p.Attempts = []prober.Attempt{
		{Start: at, Last: at, Count: 1, Duration: 2 * time.Millisecond, Outcome: prober.Successful, Warning: true, Output: "redirect"},
		{
			Start: at.Add(time.Minute), Last: at.Add(2 * time.Minute), Count: 5, Duration: time.Millisecond,
			Outcome: prober.Failed, Reason: action.HTTPStatus, Output: "<b>\xff\n", Body: "no\x1bbody", ExitCode: 3, Address: "http://127.0.0.1/to",
		},
	}
	p.LastFailures = p.Attempts[1:]
	p.Marks = []prober.Mark{{Start: at, Duration: 2 * time.Millisecond, Warning: true}, {Start: at.Add(time.Minute), Outcome: prober.Failed, Reason: action.HTTPStatus}}
	p.LastSuccess = &p.Attempts[0]
	p.FirstFailure = &prober.Attempt{Start: at.Add(time.Minute), Last: at.Add(time.Minute), Count: 1, Outcome: prober.Failed, Reason: action.Timeout}
	t.Probes[1] = p
	return t
}

// golden compares an answer with a file of testdata, indented for reading, or rewrites the
// file.
func golden(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, w.Body.Bytes(), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	testutil.Golden(t, filepath.Join("testdata", name), got.Bytes())
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d, Content-Type %q", w.Code, w.Header().Get("Content-Type"))
	}
}

// The API reports everything known of a target, and leaves out unknown values.
func TestTargets(t *testing.T) {
	unseen := prober.TargetStatus{Name: "new", Source: "docker", Live: true, StartupDuration: -1}
	h := newServer(t, options(&fake{statuses: []prober.TargetStatus{rich(), unseen}})).Handler()
	golden(t, "targets.json", get(h, "/api/v1/targets"))
	golden(t, "target.json", get(h, "/api/v1/targets/app"))
	expect(t, get(newServer(t, options(&fake{unloaded: true})).Handler(), "/api/v1/targets"), 200, `{"targets":[]}`+"\n")
}

// firstWrite is a client that notes how many targets the server had asked for before the first
// byte.
type firstWrite struct {
	*httptest.ResponseRecorder
	f     *fake
	asked int
}

func (w *firstWrite) Write(b []byte) (int, error) {
	if w.asked == 0 {
		w.asked = w.f.targetCalls
	}
	return w.ResponseRecorder.Write(b)
}

// The answer lists 1,000 targets with outputs of 1 KiB. The client has the first target before
// the server has asked for a hundred, and in the end has all targets that still exist.
func TestManyTargets(t *testing.T) {
	f := &fake{}
	for i := range 1000 {
		s := rich()
		s.Name = fmt.Sprint("app", i)
		s.Probes[0].LastFailures = []prober.Attempt{{Output: strings.Repeat("x", 1<<10)}}
		f.statuses = append(f.statuses, s)
	}
	w := &firstWrite{ResponseRecorder: httptest.NewRecorder(), f: f}
	newServer(t, options(f)).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/targets", nil))
	if w.asked == 0 || w.asked > 100 {
		t.Errorf("%d targets were read before the first was sent, want 100 at most", w.asked)
	}
	var all Targets
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || len(all.Targets) != 1000 || all.Targets[999].Name != "app999" {
		t.Errorf("got %d targets, %v", len(all.Targets), err)
	}
}

func TestUnknownTarget(t *testing.T) {
	h := newServer(t, options(mixed())).Handler()
	expect(t, get(h, "/api/v1/targets/nosuch"), 404, `{"error":"unknown target nosuch"}`+"\n")
	expect(t, get(h, "/api/v1/targets/a%2F%22%FF"), 404, `{"error":"unknown target \"a/\\\"\\xff\""}`+"\n")
}

// A value that cannot be encoded gives an error, not half an answer.
func TestEncodeError(t *testing.T) {
	w := httptest.NewRecorder()
	writeJSON(w, http.StatusOK, make(chan int))
	expect(t, w, 500, "encode the answer: json: unsupported type: chan int\n")
}

func TestConfig(t *testing.T) {
	opts := options(&fake{})
	w := get(newServer(t, opts).Handler(), "/config")
	expect(t, w, 200, "targets: []\n")
	if got := w.Header().Get("Content-Type"); got != "text/yaml; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	opts.Config = func() ([]byte, error) { return nil, errors.New("no memory") }
	expect(t, get(newServer(t, opts).Handler(), "/config"), 500, "show the configuration: no memory\n")
	opts.Prober = &fake{unloaded: true}
	expect(t, get(newServer(t, opts).Handler(), "/config"), 503, "no configuration\n")
}

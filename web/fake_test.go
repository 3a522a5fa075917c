// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

var _ Prober = (*prober.Manager)(nil)

// fake is a prober with fixed answers. Its summary fits its statuses. It counts how often a
// caller asks for all statuses.
type fake struct {
	statuses           []prober.TargetStatus
	unloaded, stopping bool
	terminating        int // how often Terminate was called
	removed            map[string]bool
	overdue, waiting   []string
	sourceUp           map[string]bool

	statusCalls         int
	targetCalls         int
	probed, newInstance []string
	asked               []string
	beats               []string // "target/probe" of each beat that has found its probe
	heartbeats          []string // "target/probe" of the probes that beats have
	onRemoved           func()
}

func (f *fake) Summary() prober.Summary {
	s := prober.Summary{Loaded: !f.unloaded, Stopping: f.stopping, Terminating: f.terminating > 0, Targets: len(f.statuses)}
	for _, t := range f.statuses {
		for _, c := range []struct {
			is bool
			n  *int
		}{{t.Started, &s.Started}, {t.Ready, &s.Ready}, {t.Live, &s.Live}} {
			if c.is {
				*c.n++
			}
		}
	}
	return s
}

func (f *fake) Status(prober.Detail) prober.Status {
	f.statusCalls++
	return prober.Status{Summary: f.Summary(), Statuses: f.statuses, SourceUp: f.sourceUp}
}

func (f *fake) Target(name string, _ prober.Detail) (prober.TargetStatus, bool) {
	f.targetCalls++
	for _, t := range f.statuses {
		if t.Name == name {
			return t, true
		}
	}
	return prober.TargetStatus{}, false
}

func (f *fake) Removed(name string) bool {
	if f.onRemoved != nil {
		f.onRemoved()
	}
	return f.removed[name]
}

func (f *fake) Asked(name string, k gate.Kind) {
	f.asked = append(f.asked, k.String()+" "+name)
}

func (f *fake) Overdue() []string { return f.overdue }
func (f *fake) Waiting() []string { return f.waiting }

func (f *fake) Probe(name string) bool {
	_, ok := f.Target(name, prober.Brief)
	f.probed = append(f.probed, name)
	return ok
}

func (f *fake) Beat(name, probe string) bool {
	place := name + "/" + probe
	if !slices.Contains(f.heartbeats, place) {
		return false
	}
	f.beats = append(f.beats, place)
	return true
}

func (f *fake) Terminate() { f.terminating++ }

func (f *fake) NewInstance(name string) bool {
	_, ok := f.Target(name, prober.Brief)
	f.newInstance = append(f.newInstance, name)
	return ok
}

// options returns the options that are the same in most tests.
func options(p Prober) Options {
	return Options{
		Prober:        p,
		Logger:        slog.New(slog.DiscardHandler),
		Metrics:       http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics\n") }),
		TelemetryPath: "/metrics",
		Config:        func() ([]byte, error) { return []byte("targets: []\n"), nil },
		TargetConfig:  func(name string) ([]byte, error) { return []byte("name: " + name + "\n"), nil },
		LastLoad:      func() Load { return Load{File: "prober.yml"} },
		Reload:        func(context.Context) error { return nil },
	}
}

func newServer(tb testing.TB, opts Options) *Server {
	tb.Helper()
	s, err := New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// do makes a request. header has lines of "Key: value".
func do(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	for _, line := range header {
		key, value, _ := strings.Cut(line, ": ")
		r.Header.Add(key, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	return do(h, http.MethodGet, target, header...)
}

// expect compares an answer.
func expect(t *testing.T, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("got %d:\n%swant %d:\n%s", w.Code, w.Body, status, body)
	}
}

func probe(k gate.Kind, result gate.Result) prober.ProbeStatus {
	return prober.ProbeStatus{
		Kind: k, Action: "httpGet", Timeout: time.Second, Period: 10 * time.Second,
		SuccessThreshold: 1, FailureThreshold: 3, Result: result, Last: result,
	}
}

func failing(k gate.Kind, reason action.Reason, failures uint64) prober.ProbeStatus {
	p := probe(k, gate.Failure)
	p.Reason, p.ConsecutiveFailures = reason, failures
	return p
}

func well(name string) prober.TargetStatus {
	return prober.TargetStatus{
		Name: name, Source: config.SourceStatic, Running: true, Started: true, Ready: true, Live: true,
		Instance: gate.Instance{ID: "static", Phase: gate.Running}, StartupDuration: -1,
		Probes: []prober.ProbeStatus{probe(gate.Startup, gate.Success), probe(gate.Readiness, gate.Success), probe(gate.Liveness, gate.Success)},
	}
}

// unready returns a target that has started and has failed its readiness probe more often than
// it may.
func unready(name string) prober.TargetStatus {
	t := well(name)
	t.Ready, t.Probes[1] = false, failing(gate.Readiness, action.HTTPStatus, 5)
	return t
}

// booting returns a target that has not started yet.
func booting(name string) prober.TargetStatus {
	t := well(name)
	t.Started, t.Ready, t.Probes[0] = false, false, failing(gate.Startup, action.ConnectionRefused, 2)
	t.Probes[0].Result, t.Probes[0].FailureThreshold = gate.Unknown, 30
	return t
}

// dead returns a target that has failed its liveness probe.
func dead(name string) prober.TargetStatus {
	t := well(name)
	t.Live, t.Probes[2] = false, failing(gate.Liveness, action.Timeout, 3)
	return t
}

func many(n int, of func(string) prober.TargetStatus) []prober.TargetStatus {
	out := make([]prober.TargetStatus, n)
	for i := range out {
		out[i] = of(fmt.Sprintf("t%d", i))
	}
	return out
}

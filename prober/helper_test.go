// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

var (
	good = action.Outcome{Success: true}
	bad  = action.Outcome{Reason: action.ConnectionRefused, Output: "connection refused"}
)

// world plays the targets: it answers every attempt and records its time. Sockets do not work
// in a bubble, so world supplies the actions.
type world struct {
	t     *testing.T
	m     *Manager
	begin time.Time

	mu     sync.Mutex
	answer map[string]func(ctx context.Context) (action.Outcome, error) // by target/kind or target/kind/name
	calls  map[string][]time.Duration                                   // since begin
	active map[string]int
	log    bytes.Buffer
}

func newWorld(t *testing.T) *world {
	w := &world{
		t:      t,
		begin:  time.Now(),
		answer: map[string]func(context.Context) (action.Outcome, error){},
		calls:  map[string][]time.Duration{},
		active: map[string]int{},
	}
	logger := slog.New(slog.NewTextHandler(lockedWriter{w}, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	w.m = New(Options{Logger: logger})
	w.m.slots = newSlots(load{attempts: HighestInFlight, files: math.MaxInt32})
	w.m.newAction = w.newAction
	return w
}

type lockedWriter struct{ w *world }

func (l lockedWriter) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) newAction(t *config.Target, p *config.Probe) action.Func {
	name := ""
	for k, q := range t.All() {
		if q == p && name == "" {
			name = probeName{t.Name, k, p.Name}.String()
		}
	}
	return func(ctx context.Context) (action.Outcome, error) {
		w.mu.Lock()
		w.calls[name] = append(w.calls[name], time.Since(w.begin))
		w.active[name]++
		if w.active[name] > 1 {
			w.t.Errorf("%s overlaps itself", name)
		}
		answer := w.answer[name]
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.active[name]--
		}()
		if answer == nil {
			return good, nil
		}
		return answer(ctx)
	}
}

// on sets the answer to a probe's attempts from now on.
func (w *world) on(name string, answer func(ctx context.Context) (action.Outcome, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer[name] = answer
}

func (w *world) says(name string, o action.Outcome) {
	w.on(name, func(context.Context) (action.Outcome, error) { return o, nil })
}

// takes makes a probe's attempts last for d, unless something cuts them short.
func (w *world) takes(name string, d time.Duration, o action.Outcome) {
	w.on(name, func(ctx context.Context) (action.Outcome, error) {
		select {
		case <-time.After(d):
			return o, nil
		case <-ctx.Done():
			return action.Outcome{}, ctx.Err()
		}
	})
}

// at returns the times of a probe's attempts.
func (w *world) at(name string) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.calls[name]...)
}

func (w *world) apply(targets ...config.Target) {
	w.t.Helper()
	if err := w.m.Apply(&config.Config{Targets: targets}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// sleepUntil moves the bubble's time to d after the beginning, and waits until everything that
// is due then has happened.
func (w *world) sleepUntil(d time.Duration) {
	time.Sleep(d - time.Since(w.begin))
	synctest.Wait()
}

// is checks what the agent says of a target: started, ready and live (s, r, l) in one word,
// with an upper case letter for yes. A letter may be missing.
func (w *world) is(name, want string) {
	w.t.Helper()
	s, ok := w.m.Target(name, Brief)
	if !ok {
		w.t.Fatalf("no target %q", name)
	}
	got := []byte("srl")
	for i, flag := range []bool{s.Started, s.Ready, s.Live} {
		if flag {
			got[i] -= 'a' - 'A'
		}
	}
	if string(got) != want {
		w.t.Errorf("%v: %s is %s, want %s", time.Since(w.begin), name, got, want)
	}
}

func (w *world) probe(name string, k gate.Kind) ProbeStatus {
	w.t.Helper()
	s, _ := w.m.Target(name, Full)
	p, ok := s.Probe(k)
	if !ok {
		w.t.Fatalf("%s has no %v probe", name, k)
	}
	return p
}

// counted returns the numbers of successful, failed and unknown attempts.
func (p ProbeStatus) counted() string {
	return fmt.Sprintf("%d/%d/%d", p.Successful, p.Failed, p.Unknown)
}

// every returns a probe with that period and the defaults of the file.
func every(period time.Duration) *config.Probe {
	return &config.Probe{
		HTTPGet:          &config.HTTPGet{Port: config.PortRef{Number: 80}, Path: "/", Scheme: "HTTP"},
		Timeout:          time.Second,
		Period:           period,
		SuccessThreshold: 1,
		FailureThreshold: 3,
	}
}

// app returns a target with the given probes, each of which may be nil.
func app(name string, startup, readiness, liveness *config.Probe) config.Target {
	return config.Target{
		Name:           name,
		Host:           "127.0.0.1",
		Instance:       config.Instance{Source: config.SourceStatic},
		StartupProbe:   startup,
		ReadinessProbe: readiness,
		LivenessProbe:  liveness,
	}
}

// equal compares times of attempts.
func equal(t *testing.T, what string, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

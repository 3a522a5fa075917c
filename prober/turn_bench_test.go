// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// BenchmarkTurn is all that a turn takes besides its action: gate, counters, histogram,
// history, timers.
func BenchmarkTurn(b *testing.B) {
	m := New(Options{})
	defer m.Close()
	m.newAction = func(*config.Target, *config.Probe) action.Func {
		return func(context.Context) (action.Outcome, error) { return good, nil }
	}
	if err := m.Apply(&config.Config{Targets: []config.Target{app("app", nil, every(time.Hour), nil)}}); err != nil {
		b.Fatal(err)
	}
	w := m.targets[0].workers[0]
	for stopped := false; !stopped; runtime.Gosched() {
		w.target.mu.Lock()
		stopped = w.timer.Stop() // or its first turn runs
		w.target.mu.Unlock()
	}
	w.takeTurns() // the first one makes what is kept
	b.ReportAllocs()
	for b.Loop() {
		w.timer.Stop()
		w.takeTurns()
	}
}

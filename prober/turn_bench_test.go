// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// BenchmarkTurn measures everything in a turn except its action: gate, counters, histogram,
// history, timers.
func BenchmarkTurn(b *testing.B) {
	benchmarkTurn(b, 0, func() action.Outcome { return good })
}

// BenchmarkTurnThatChanges measures a turn that changes whether the target is ready, beside
// that many subscriptions.
func BenchmarkTurnThatChanges(b *testing.B) {
	for _, readers := range []int{0, 1, 100} {
		b.Run(strconv.Itoa(readers), func(b *testing.B) {
			outcome, next := bad, good
			benchmarkTurn(b, readers, func() action.Outcome {
				outcome, next = next, outcome
				return outcome
			})
		})
	}
}

func benchmarkTurn(b *testing.B, readers int, answer func() action.Outcome) {
	m := New(Options{})
	defer m.Close()
	m.newAction = func(*config.Target, *config.Probe) action.Func {
		return func(context.Context) (action.Outcome, error) { return answer(), nil }
	}
	target := app("app", nil, every(time.Hour), nil)
	target.ReadinessProbe.FailureThreshold = 1
	if err := m.Apply(&config.Config{Targets: []config.Target{target}}); err != nil {
		b.Fatal(err)
	}
	w := m.targets[0].workers[0]
	for stopped := false; !stopped; runtime.Gosched() {
		w.target.mu.Lock()
		stopped = w.timer.Stop() // otherwise the first turn would run
		w.target.mu.Unlock()
	}
	w.takeTurns() // the first turn allocates the memory that the probe keeps
	for range readers {
		s := m.Subscribe()
		defer s.Close()
		s.Changes() // otherwise another name would cost nothing
	}
	b.ReportAllocs()
	for b.Loop() {
		w.timer.Stop()
		w.takeTurns()
	}
}

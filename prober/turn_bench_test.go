// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

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
	w.turn() // the first one makes what is kept
	b.ReportAllocs()
	for b.Loop() {
		w.timer.Stop()
		w.turn()
	}
}

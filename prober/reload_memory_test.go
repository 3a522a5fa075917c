// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// 20 reloads, each of which changes a different one of 20 targets, leave only the first
// configuration in memory: from each later configuration the agent keeps one target.
func TestReloadsLeaveNoConfigurations(t *testing.T) {
	m := New(Options{})
	defer m.Close()
	m.newAction = func(*config.Target, *config.Probe) action.Func {
		return func(context.Context) (action.Outcome, error) { return good, nil }
	}
	periods := make([]time.Duration, 20)
	var kept []weak.Pointer[config.Target]
	for i := range periods {
		periods[i] = time.Hour
	}
	for i := range periods {
		periods[i] += time.Second
		cfg := new(config.Config)
		for n, period := range periods {
			cfg.Targets = append(cfg.Targets, app(fmt.Sprintf("t%d", n), nil, every(period), nil))
		}
		kept = append(kept, weak.Make(&cfg.Targets[0]))
		if err := m.Apply(cfg); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	alive := 0
	for _, k := range kept[1:] {
		if k.Value() != nil {
			alive++
		}
	}
	if alive > 0 {
		t.Errorf("memory holds %d of the later configurations", alive)
	}
	if got := len(m.Status(Brief).Statuses); got != 20 {
		t.Errorf("%d targets, want 20", got)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// beats measures our side alone: nobody else has heartbeats.
func beats(b *bench, r row) error {
	dir, err := os.MkdirTemp("", "beats")
	if err != nil {
		return fmt.Errorf("make a directory for beats: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := spec{
		Measure: measureCost, Side: sideOurs, Action: r.action, Probes: r.probes,
		Window: time.Duration(b.seconds * float64(time.Second) / 2), Warm: 300 * time.Millisecond,
	}
	files := make([]string, r.probes)
	for i := range files {
		files[i] = filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(files[i], nil, 0o600); err != nil {
			return fmt.Errorf("make a beat: %w", err)
		}
	}
	b.at[r.action] = files
	var cpu, allocs []float64
	for range b.rounds {
		f, err := b.measured(s)
		if err != nil {
			return err
		}
		if f.Failed > 0 {
			_, _ = fmt.Fprintf(os.Stderr, "  %d probes failed: %s\n", f.Failed, f.Because)
		}
		cpu, allocs = append(cpu, f.CPU), append(allocs, f.Allocs)
	}
	b.table.add(line{title: r.title, unit: "µs", ours: cpu, reach: cpu, goal: r.goal, goalUnit: " µs"})
	b.table.add(line{title: "allocations, " + r.title, ours: allocs})
	return nil
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

const megabyte = 1e6

// anonymousGoal is how much memory a sidecar may have for itself, in MB. All agents of a
// machine share the other memory, the pages of the binary.
const anonymousGoal = 4

// sidecar measures the shipped binary with three targets and bench/libraries, by turns.
func sidecar(b *bench, r row) error {
	var ours, libraries resident
	var ratios []float64
	for range b.few() {
		if err := b.sidecarOnce(&ours, b.binary, "/ready"); err != nil {
			return err
		}
		if b.plain == "" {
			continue
		}
		if err := b.sidecarOnce(&libraries, b.plain, "/metrics"); err != nil {
			return err
		}
		last := len(ours.all) - 1
		ratios = append(ratios, ours.all[last]/libraries.all[last])
	}
	b.table.add(line{title: r.title, unit: "MB", usual: libraries.all, ours: ours.all, reach: ratios, goal: r.goal, goalUnit: "×"})
	b.table.add(line{title: "– of which pages of the binary, shared by all agents of a machine", unit: "MB", usual: libraries.files, ours: ours.files})
	b.table.add(line{
		title: "– of which the anonymous part", unit: "MB", usual: libraries.anonymous, ours: ours.anonymous,
		reach: ours.anonymous, goal: anonymousGoal, goalUnit: " MB",
	})
	return nil
}

// resident is the resident memory of each round, in MB.
type resident struct{ all, files, anonymous []float64 }

// sidecarOnce adds the resident memory of a program after ten scrapes as by Prometheus. The
// program has begun when it answers a path.
func (b *bench) sidecarOnce(into *resident, binary, path string) error {
	a, err := b.shipAs(binary, b.targets(3, time.Second, "startup", "readiness", "liveness"))
	if err != nil {
		return err
	}
	defer a.stop()
	if err := a.until(b.ctx, 10*time.Second, path); err != nil {
		return err
	}
	for range 10 {
		pause(b.ctx, 500*time.Millisecond)
		if _, err := a.get("/metrics", http.Header{"Accept": {scrapeAccept}, "Accept-Encoding": {"gzip"}}); err != nil {
			return err
		}
	}
	pause(b.ctx, time.Second)
	all, files := float64(residentOf(a.pid()))/megabyte, float64(residentFilesOf(a.pid()))/megabyte
	into.all, into.files, into.anonymous = append(into.all, all), append(into.files, files), append(into.anonymous, all-files)
	return nil
}

// size measures the shipped binary and bench/libraries.
func size(b *bench, r row) error {
	l := line{title: r.title, unit: "MB", goal: r.goal, goalUnit: " MB"}
	for path, into := range map[string]*[]float64{b.binary: &l.ours, b.plain: &l.usual} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("look at a binary: %w", err)
		}
		*into = []float64{float64(info.Size()) / megabyte}
	}
	l.reach = l.ours
	b.table.add(l)
	return nil
}

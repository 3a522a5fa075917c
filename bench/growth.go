// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// growthSizes are how many targets the plots have.
var growthSizes = []int{10, 30, 100, 300, 1000, 3000, 10_000}

// growth measures how cost grows with the number of targets, prints the table and
// writes the plots into dir.
func (b *bench) growth(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the plots: %w", err)
	}
	cpu := plot{title: "CPU time of an httpGet probe, one a second for each target", x: "targets", y: "µs a probe"}
	memory := plot{title: "Resident memory, httpGet, one probe for each target", x: "targets", y: "MB"}
	_, _ = fmt.Fprintf(b.out, "\n| targets | CPU of a probe: the usual way | ours | memory: the usual way | ours |\n|---|---|---|---|---|\n")
	of := map[string][2]*series{}
	for _, side := range []string{sideUsual, sideOurs} {
		name := map[string]string{sideUsual: "the usual way", sideOurs: "ours"}[side]
		of[side] = [2]*series{cpu.add(name), memory.add(name)}
	}
	for _, n := range growthSizes {
		window := 2 * time.Second
		if n <= 100 {
			window = 5 * time.Second // of few probes it takes more to be steady
		}
		cells := []string{number(float64(n)), "", "", "", ""}
		for i, side := range []string{sideUsual, sideOurs} {
			f, err := b.measured(spec{
				Measure: measureCost, Side: side, Action: actionHTTP, Probes: n, Period: time.Second,
				Warm: 1500 * time.Millisecond, Window: window,
			})
			if err != nil {
				return err
			}
			of[side][0].add(float64(n), f.CPU)
			of[side][1].add(float64(n), f.MaxRSS/megabyte)
			cells[1+i] = number(f.CPU) + " µs"
			cells[3+i] = number(f.MaxRSS/megabyte) + " MB"
		}
		_, _ = fmt.Fprintln(b.out, "| "+strings.Join(cells, " | ")+" |")
	}
	for name, p := range map[string]plot{"cpu.svg": cpu, "memory.svg": memory} {
		if err := os.WriteFile(filepath.Join(dir, name), p.svg(), 0o644); err != nil {
			return fmt.Errorf("write a plot: %w", err)
		}
	}
	return nil
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// growthSizes are the numbers of targets in the table.
var growthSizes = []int{10, 30, 100, 300, 1000, 3000, 10_000}

// growth measures how cost grows with the number of targets, and prints the table.
func (b *bench) growth() error {
	_, _ = fmt.Fprintf(b.out, "\n| targets | CPU of a probe: the usual way | ours | memory: the usual way | ours |\n|---|---|---|---|---|\n")
	for _, n := range growthSizes {
		window := 2 * time.Second
		if n <= 100 {
			window = 5 * time.Second // few probes need a longer window for steady figures
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
			cells[1+i] = number(f.CPU) + " µs"
			cells[3+i] = number(f.MaxRSS/megabyte) + " MB"
		}
		_, _ = fmt.Fprintln(b.out, "| "+strings.Join(cells, " | ")+" |")
	}
	return nil
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// line is a line of the table: the figures of the rounds, and the goal.
type line struct {
	title              string
	unit               string
	usual, ours, floor []float64
	reach              []float64 // the figures that goal bounds; empty: no goal
	goal               float64
	goalUnit           string
	err                error
}

// table collects lines.
type table struct{ lines []line }

func (t *table) add(l line) { t.lines = append(t.lines, l) }

func (t *table) failed(r row, err error) { t.add(line{title: r.title, err: err}) }

// print writes the table in Markdown.
func (t *table) print(w io.Writer, took time.Duration) {
	_, _ = fmt.Fprintf(w, "\n| | the usual way | ours | the floor | reached | goal | |\n|---|---|---|---|---|---|---|\n")
	for _, l := range t.lines {
		_, _ = fmt.Fprintln(w, l.String())
	}
	_, _ = fmt.Fprintf(w, "\nEach figure is the median of all rounds, with the lowest and the highest round in brackets.\n"+
		"A ratio is the median of the ratios of the rounds. The run took %v.\n", took.Round(time.Second))
}

// String returns the line in Markdown.
func (l line) String() string {
	if l.err != nil {
		return fmt.Sprintf("| %s | | | | %s | | no |", l.title, strings.ReplaceAll(l.err.Error(), "|", "/"))
	}
	cells := []string{l.title, cell(l.usual, l.unit), cell(l.ours, l.unit), cell(l.floor, l.unit), "", "", ""}
	if len(l.reach) > 0 {
		cells[4] = number(median(l.reach)) + l.goalUnit
		cells[5] = "≤ " + number(l.goal) + l.goalUnit
		cells[6] = "yes"
		if !(median(l.reach) <= l.goal) {
			cells[6] = "no"
		}
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// cell formats a median with its spread.
func cell(values []float64, unit string) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return strings.TrimSpace(number(values[0]) + " " + unit)
	}
	text := strings.TrimSpace(number(median(values)) + " " + unit)
	return fmt.Sprintf("%s (%s–%s)", text, number(slices.Min(values)), number(slices.Max(values)))
}

// number formats a number with three significant digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1000:
		return fmt.Sprintf("%.0f", v)
	case a >= 1000:
		return thousands(fmt.Sprintf("%.0f", v))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

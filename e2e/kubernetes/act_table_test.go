// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const gateType = "example.org/shop-ready"

// span returns the time between two moments of a pod.
type span func(moments) time.Duration

// never is the span from or to an event that did not happen.
const never = time.Duration(math.MinInt64)

// between is the span from one moment to another.
func between(from, to func(moments) time.Time) span {
	return func(m moments) time.Duration {
		if from(m).IsZero() || to(m).IsZero() {
			return never
		}
		return to(m).Sub(from(m))
	}
}

var (
	atFault     = func(m moments) time.Time { return m.fault }
	atVerdict   = func(m moments) time.Time { return m.verdict }
	atTerm      = func(m moments) time.Time { return m.term }
	atUnready   = func(m moments) time.Time { return m.unready }
	atCondition = func(m moments) time.Time { return m.condition }

	faultToVerdict     = between(atFault, atVerdict)
	faultToTerm        = between(atFault, atTerm)
	verdictToTerm      = between(atVerdict, atTerm)
	faultToUnready     = between(atFault, atUnready)
	verdictToCondition = between(atVerdict, atCondition)
)

// figure is the median and the maximum of some times.
type figure struct{ median, greatest time.Duration }

// of returns the figure of some cells; there is none if both events happened in no pod.
func (r results) of(s span, cells ...cell) (figure, bool) {
	var all []time.Duration
	for _, c := range cells {
		for _, m := range r[c.key()] {
			if d := s(m); d != never {
				all = append(all, d)
			}
		}
	}
	if len(all) == 0 {
		return figure{}, false
	}
	slices.Sort(all)
	return figure{(all[(len(all)-1)/2] + all[len(all)/2]) / 2, all[len(all)-1]}, true
}

func (f figure) String() string { return short(f.median) + " (" + short(f.greatest) + ")" }

// short formats a time with about three digits.
func short(d time.Duration) string {
	if d == never {
		return "never"
	}
	if d < time.Second {
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// table returns a line of Markdown for each fault of each layout.
func (r results) table(all []cell) string {
	layout := func(c cell) int {
		return slices.IndexFunc(all, func(a cell) bool { return a.layout.name == c.layout.name })
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b cell) int { return layout(a) - layout(b) })
	var out strings.Builder
	out.WriteString("| | fault | fault to SIGTERM | verdict to SIGTERM | fault to `Ready=False` | verdict to the condition |\n|---|---|---|---|---|---|\n")
	for _, c := range all {
		unready := c
		if c.layout.name == ownProbes.name {
			if c.after == "/readyz" {
				continue // part of the line of the same fault
			}
			unready = onReadyz(ownProbes, c.fault)
		}
		fmt.Fprintf(&out, "| %s | %s |", c.layout.name, faults[c.fault])
		for _, column := range []struct {
			span span
			cell cell
		}{{faultToTerm, c}, {verdictToTerm, c}, {faultToUnready, unready}, {verdictToCondition, c}} {
			f, ok := r.of(column.span, column.cell)
			if !ok {
				out.WriteString("  |")
				continue
			}
			fmt.Fprintf(&out, " %s |", f)
		}
		out.WriteString("\n")
	}
	return out.String()
}

var faults = map[string]string{"hang": "hangs", "500": "answers 500", "refuse": "closes its listener"}

// goal is a goal of docs/performance.md.
type goal struct {
	what, limit, reached string
	ok                   bool
}

// absolute is a goal for all pods of some cells.
func (r results) absolute(what string, s span, most time.Duration, cells ...cell) goal {
	f, ok := r.of(s, cells...)
	return goal{what, "≤ " + short(most), f.String(), ok && f.greatest <= most}
}

// relative is a goal for the medians of two cells.
func (r results) relative(what string, s span, c, than cell) goal {
	f, ok := r.of(s, c)
	most, known := r.of(s, than)
	return goal{what, "≤ " + most.String(), f.String(), ok && known && f.median <= most.median}
}

// judge prints the goals. A missed goal is a failure of the test.
func judge(t *testing.T, goals ...goal) {
	t.Helper()
	var out strings.Builder
	out.WriteString("| | goal | median (greatest) | reached |\n|---|---|---|---|\n")
	missed := 0
	for _, g := range goals {
		yes := "yes"
		if !g.ok {
			yes, missed = "no", missed+1
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", g.what, g.limit, g.reached, yes)
	}
	t.Logf("\n\n%s", out.String())
	if missed > 0 {
		t.Errorf("%d of %d goals are missed", missed, len(goals))
	}
}

// The goal of the command, for every test.
const (
	execGoal = "a command, 2 s × 2: verdict to SIGTERM"
	execMost = 4500 * time.Millisecond
)

// goals are the goals of the quick layouts.
func (r results) goals() (all []goal) {
	each := func(l layout, kinds ...string) (cells []cell) {
		for _, fault := range kinds {
			cells = append(cells, onHealthz(l, fault, 0))
		}
		return cells
	}
	all = append(all, r.absolute("a signal: verdict to SIGTERM", verdictToTerm, 50*time.Millisecond, each(signals, faultKinds...)...))
	for _, fault := range faultKinds {
		all = append(all, r.relative("a signal, the application "+faults[fault]+": fault to SIGTERM", faultToTerm, onHealthz(signals, fault, 0), onHealthz(ownProbes, fault, 0)))
	}
	all = append(all,
		r.absolute("a signal, 0.25 s × 2: fault to SIGTERM", faultToTerm, time.Second, each(signalsFast, faultKinds...)...),
		r.absolute(execGoal, verdictToTerm, execMost, each(execClient, "hang", "500")...),
		r.absolute("a readiness gate: verdict to the condition", verdictToCondition, 150*time.Millisecond, onReadyz(gated, "hang"), onReadyz(gated, "500"), onReadyz(gated, "refuse")),
	)
	for _, fault := range faultKinds {
		all = append(all, r.relative("a readiness gate, the application "+faults[fault]+": fault to `Ready=False`", faultToUnready, onReadyz(gated, fault), onReadyz(ownProbes, fault)))
	}
	return all
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"time"
)

// row is one line of the table, or a few lines that are measured together.
type row struct {
	name, title string
	action      string
	probes      int
	period      time.Duration
	goal        float64 // of the ratio, or of the value in the row's own unit
	allocs      float64 // the goal for the allocations per probe; 0: none
	sides       []string
	run         func(*bench, row) error
}

// fast is how many probes run at a time if they run as fast as possible.
const fast = 64

// many is the number of targets in the large set-up.
const many = 10_000

func allRows() []row {
	three := []string{sideUsual, sideOurs, sideFloor}
	return []row{
		{name: "http-rate", title: "httpGet, 1,000/s", action: actionHTTP, probes: 1000, period: time.Second, goal: 0.45, sides: three, run: compare},
		{name: "http-flat", title: "httpGet, as fast as it goes", action: actionHTTP, probes: fast, goal: 0.75, allocs: 42, sides: three, run: compare},
		{name: "https-flat", title: "httpGet over TLS", action: actionHTTPS, probes: fast, goal: 0.75, sides: three[:2], run: compare},
		{name: "verified-flat", title: "httpGet over TLS, verified", action: actionVerified, probes: fast, goal: 1.10, sides: three[:2], run: compare},
		{name: "unix-flat", title: "httpGet over a Unix socket", action: actionUnix, probes: fast, goal: 1.30, sides: three[:2], run: compare},
		{name: "tcp-rate", title: "tcpSocket, 1,000/s", action: actionTCP, probes: 1000, period: time.Second, goal: 0.55, sides: three, run: compare},
		{name: "tcp-flat", title: "tcpSocket, as fast as it goes", action: actionTCP, probes: fast, goal: 0.90, allocs: 16, sides: three, run: compare},
		{name: "grpc-rate", title: "grpc, 1,000/s", action: actionGRPC, probes: 1000, period: time.Second, goal: 0.35, sides: three, run: compare},
		{name: "grpc-flat", title: "grpc, as fast as it goes", action: actionGRPC, probes: fast, goal: 0.40, allocs: 40, sides: three, run: compare},
		{name: "exec-flat", title: "exec, the parent's share", action: actionExec, probes: 4, goal: 0.80, sides: three, run: compare},
		{name: "heartbeat-flat", title: "heartbeat of a file, as fast as it goes", action: actionBeat, probes: fast, goal: 10, run: beats},
		{name: "idle", title: "resident bytes of an idle probe, 10,000 × 3", action: actionHTTP, probes: many, period: time.Hour, goal: 1500, run: idleProbe},
		{name: "late-10s", title: "lateness p99, 10,000 httpGet at 10 s", action: actionHTTP, probes: many, period: 10 * time.Second, goal: 5, run: late},
		{name: "late-1s", title: "lateness p99, 10,000 httpGet at 1 s", action: actionHTTP, probes: many, period: time.Second, goal: 50, run: late},
		{name: "sidecar", title: "resident memory with 3 targets, after 10 scrapes (first column: the libraries)", goal: 1.2, run: sidecar},
		{name: "binary", title: "size of the stripped binary (first column: the libraries)", goal: 16.5, run: size},
		{name: "client", title: "CPU of a health check that fails open (first column: with a further flag)", goal: 10, run: client},
		{name: "start", title: "start with 10,000 targets to the first probe", goal: 300, run: start},
		{name: "ready", title: "/ready at 10,000 targets, compared with 3", goal: 1.3, run: ready},
		{name: "scrape", title: "/metrics at 10,000 × 3", goal: 1.5, run: scrape},
		{name: "delay", title: "turns more than 100 ms late during scrapes, 10,000 at 10 s", run: delay},
	}
}

// garbageGoal is how much garbage a scrape may leave, in MB.
const garbageGoal = 300

// compare measures the sides of a comparison by turns, so that other work of the machine falls
// on all sides alike.
func compare(b *bench, r row) error {
	s := spec{
		Measure: measureCost, Action: r.action, Probes: r.probes, Period: r.period,
		Window: time.Duration(b.seconds * float64(time.Second)), Warm: 300 * time.Millisecond,
	}
	if r.period > 0 {
		s.Warm += r.period // so that every probe has run once
	} else {
		s.Window /= 2 // half a window still has thousands of probes
	}
	cpu := map[string][]float64{}
	allocs := map[string][]float64{}
	var ratios []float64
	for round := range b.rounds {
		for i := range r.sides {
			s.Side = r.sides[(i+round)%len(r.sides)]
			f, err := b.measured(s)
			if err != nil {
				return err
			}
			if f.Failed > 0 {
				_, _ = fmt.Fprintf(os.Stderr, "  %s: %d probes failed: %s\n", s.Side, f.Failed, f.Because)
			}
			cpu[s.Side] = append(cpu[s.Side], f.CPU)
			allocs[s.Side] = append(allocs[s.Side], f.Allocs)
		}
		ratios = append(ratios, cpu[sideOurs][round]/cpu[sideUsual][round])
	}
	b.table.add(line{
		title: r.title, unit: "µs", usual: cpu[sideUsual], ours: cpu[sideOurs], floor: cpu[sideFloor],
		reach: ratios, goal: r.goal, goalUnit: "×",
	})
	if r.allocs > 0 {
		b.table.add(line{
			title: "allocations, " + r.title, unit: "", usual: allocs[sideUsual], ours: allocs[sideOurs],
			reach: allocs[sideOurs], goal: r.allocs,
		})
	}
	return nil
}

// few returns how often to measure a row of the large set-up: twice at most, because the row
// takes long and its figures are steady.
func (b *bench) few() int { return min(b.rounds, 2) }

// idleProbe measures once: the first turns alone take half a minute.
func idleProbe(b *bench, r row) error {
	f, err := b.measured(spec{
		Measure: measureIdle, Side: sideOurs, Action: r.action, Probes: r.probes, Period: r.period,
		Kinds: []string{"startup", "readiness", "liveness"}, Warm: time.Minute,
	})
	if err != nil {
		return err
	}
	resident := []float64{f.Bytes}
	b.table.add(line{title: r.title, unit: "B", ours: resident, reach: resident, goal: r.goal, goalUnit: " B"})
	b.table.add(line{title: "– of which heap in use", unit: "B", ours: []float64{f.Heap}})
	return nil
}

func late(b *bench, r row) error {
	var p50, p99, rate []float64
	for range b.few() {
		s := spec{
			Measure: measureLateness, Side: sideOurs, Action: r.action, Probes: r.probes, Period: r.period,
			Warm: r.period + time.Second, Window: 4 * time.Second,
		}
		f, err := b.measured(s)
		if err != nil {
			return err
		}
		if f.Failed > 0 {
			_, _ = fmt.Fprintf(os.Stderr, "  %d probes failed: %s\n", f.Failed, f.Because)
		}
		p50, p99, rate = append(p50, f.P50*1e3), append(p99, f.P99*1e3), append(rate, f.Rate)
	}
	b.table.add(line{title: r.title, unit: "ms", ours: p99, reach: p99, goal: r.goal, goalUnit: " ms"})
	b.table.add(line{title: fmt.Sprintf("– median, at %.0f/s", median(rate)), unit: "ms", ours: p50})
	return nil
}

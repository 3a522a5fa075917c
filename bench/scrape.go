// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// scrape measures the costs of a scrape of the shipped binary, between the turns of its probes,
// by the counters of the kernel and of the agent. Then, while the probes run, it measures how
// many turns a scrape delays.
func scrape(b *bench, r row) error {
	// With a period of an hour the first turns come within 30 s, and no others follow.
	a, err := b.ship(b.targets(many, time.Hour, "startup", "readiness", "liveness"), "--web.enable-pprof")
	if err != nil {
		return err
	}
	defer a.stop()
	if err := a.untilReady(b.ctx, time.Minute); err != nil {
		return err
	}
	pause(b.ctx, 2*time.Second)
	for _, encoding := range []string{"identity", "gzip"} {
		cost, err := b.scrapes(a, encoding)
		if err != nil {
			return err
		}
		title := r.title + ", " + encoding
		b.table.add(line{title: fmt.Sprintf("%s: CPU (%.1f MB)", title, cost.megabytes), unit: "s", ours: cost.cpu, reach: cost.cpu, goal: r.goal, goalUnit: " s"})
		b.table.add(line{title: title + ": garbage", unit: "MB", ours: cost.garbage, reach: cost.garbage, goal: garbageGoal, goalUnit: " MB"})
	}
	return nil
}

// scrapeCost has the costs of several scrapes: cpu in seconds, garbage in MB.
type scrapeCost struct {
	cpu, garbage []float64
	megabytes    float64 // the size of an answer
}

func (b *bench) scrapes(a *agent, encoding string) (cost scrapeCost, err error) {
	for range b.few() + 1 {
		its, err := a.used(func() error {
			sent, _, err := a.lateTurns(encoding)
			cost.megabytes = float64(sent) / megabyte
			pause(b.ctx, 500*time.Millisecond) // the garbage of a scrape counts for that scrape
			return err
		})
		if err != nil {
			return cost, err
		}
		cost.cpu = append(cost.cpu, its.cpu.Seconds())
		cost.garbage = append(cost.garbage, its.allocated/megabyte)
	}
	return cost, nil
}

// delay counts the turns that begin more than 100 ms late between scrapes 5 s apart. If a
// scrape delays turns, the next scrape shows it. Meanwhile the agent makes 1,000 attempts a
// second.
func delay(b *bench, r row) error {
	a, err := b.ship(b.targets(many, 10*time.Second, "readiness"))
	if err != nil {
		return err
	}
	defer a.stop()
	if err := a.untilReady(b.ctx, time.Minute); err != nil {
		return err
	}
	pause(b.ctx, 2*time.Second)
	const apart = 5 * time.Second
	var late []float64
	_, before, err := a.lateTurns("identity")
	if err != nil {
		return err
	}
	for range b.few() {
		pause(b.ctx, apart)
		_, now, err := a.lateTurns("identity")
		if err != nil {
			return err
		}
		late = append(late, now-before)
		before = now
	}
	b.table.add(line{title: r.title, ours: late, reach: late, goal: r.goal})
	return nil
}

// usage is what the agent has used; allocated is in bytes.
type usage struct {
	cpu       time.Duration
	allocated float64
}

// used returns what the agent uses while f runs.
func (a *agent) used(f func() error) (u usage, err error) {
	allocated, err := a.allocated()
	if err != nil {
		return u, err
	}
	cpu, err := a.cpu()
	if err != nil {
		return u, err
	}
	if err := f(); err != nil {
		return u, err
	}
	if u.cpu, err = a.cpu(); err != nil {
		return u, err
	}
	if u.allocated, err = a.allocated(); err != nil {
		return u, err
	}
	u.cpu -= cpu
	u.allocated -= allocated
	return u, nil
}

// allocated returns how many bytes the agent has ever allocated, without a scrape.
func (a *agent) allocated() (float64, error) {
	heap, err := a.get("/debug/pprof/heap?debug=1", nil)
	if err != nil {
		return 0, err
	}
	return numberAfter(heap, "# TotalAlloc = ")
}

// lateTurns scrapes, and returns the size of the answer and how many turns have been more than
// 100 ms late.
func (a *agent) lateTurns(encoding string) (sent int, turns float64, err error) {
	body, err := a.get("/metrics", http.Header{"Accept": {scrapeAccept}, "Accept-Encoding": {encoding}})
	if err != nil {
		return 0, 0, err
	}
	text := body
	if encoding == "gzip" {
		unzipped, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			return 0, 0, fmt.Errorf("unzip a scrape: %w", err)
		}
		all, err := io.ReadAll(unzipped)
		if err != nil {
			return 0, 0, fmt.Errorf("unzip a scrape: %w", err)
		}
		text = string(all)
	}
	const name = "\nprober_exporter_probe_lateness_seconds"
	all, errAll := numberAfter(text, name+"_count ")
	within, errWithin := numberAfter(text, name+`_bucket{le="0.1"} `)
	return len(body), all - within, errors.Join(errAll, errWithin)
}

func numberAfter(text, label string) (float64, error) {
	_, rest, found := strings.Cut(text, label)
	if !found {
		return 0, fmt.Errorf("no %q", strings.TrimSpace(label))
	}
	rest, _, _ = strings.Cut(rest, "\n")
	return strconv.ParseFloat(strings.TrimSpace(rest), 64)
}

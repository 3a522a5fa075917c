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

// scrape measures what a scrape of the shipped binary costs while its probes run, by
// its own counters and by the kernel's.
func scrape(b *bench, r row) error {
	a, err := b.ship(b.targets(many, 10*time.Second, "startup", "readiness", "liveness"))
	if err != nil {
		return err
	}
	defer a.stop()
	if err := a.untilReady(b.ctx, time.Minute); err != nil {
		return err
	}
	pause(b.ctx, 2*time.Second)

	background, err := a.used(func() error {
		pause(b.ctx, 4*time.Second)
		return nil
	})
	if err != nil {
		return err
	}
	for _, encoding := range []string{"identity", "gzip"} {
		cost, err := b.scrapes(a, encoding, background)
		if err != nil {
			return err
		}
		title := r.title + ", " + encoding
		b.table.add(line{title: fmt.Sprintf("%s: CPU (%.1f MB)", title, cost.megabytes), unit: "s", ours: cost.cpu, reach: cost.cpu, goal: r.goal, goalUnit: " s"})
		b.table.add(line{title: title + ": garbage", unit: "MB", ours: cost.garbage, reach: cost.garbage, goal: garbageGoal, goalUnit: " MB"})
		b.table.add(line{title: title + ": turns later than 100 ms", ours: cost.late, reach: cost.late, goal: delayGoal})
	}
	return nil
}

// scrapeCost is what each of several scrapes took; cpu in seconds, garbage in MB.
type scrapeCost struct {
	cpu, garbage, late []float64
	megabytes          float64 // that were sent
}

func (b *bench) scrapes(a *agent, encoding string, background usage) (cost scrapeCost, err error) {
	_, before, err := a.lateTurns(encoding)
	if err != nil {
		return cost, err
	}
	for range b.few() + 1 {
		pause(b.ctx, 1500*time.Millisecond) // nothing that scrapes share is left
		var late float64
		its, err := a.used(func() error {
			var sent int
			var err error
			if sent, late, err = a.lateTurns(encoding); err != nil {
				return err
			}
			cost.megabytes = float64(sent) / megabyte
			pause(b.ctx, time.Second) // what it leaves behind is its own
			return nil
		})
		if err != nil {
			return cost, err
		}
		share := its.took.Seconds() / background.took.Seconds()
		cost.cpu = append(cost.cpu, its.cpu.Seconds()-share*background.cpu.Seconds())
		cost.garbage = append(cost.garbage, (its.allocated-share*background.allocated)/megabyte)
		cost.late = append(cost.late, late-before)
		before = late
	}
	// What a scrape delayed shows in the one after it.
	_, last, err := a.lateTurns(encoding)
	cost.late = append(cost.late[1:], last-before)
	return cost, err
}

// usage is what the agent has used; allocated in bytes.
type usage struct {
	took, cpu time.Duration
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
	began := time.Now()
	if err := f(); err != nil {
		return u, err
	}
	u.took = time.Since(began)
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

// lateTurns scrapes, and returns how many turns were later than 100 ms.
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

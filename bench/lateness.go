// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/pprof"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
)

// lateness measures how late the agent's turns are, after each probe has had one turn. Within
// the window it asks only for a histogram: turns would wait while it counted ten thousand
// probes.
func lateness(s spec) (figures, error) {
	on, err := ours(s)
	if err != nil {
		return figures{}, err
	}
	defer on.stop()
	ctx := context.Background()
	pause(ctx, s.Warm)
	endProfile, err := profile(s.Profile)
	if err != nil {
		return figures{}, err
	}
	before, began := on.manager.Lateness(), time.Now()
	pause(ctx, s.Window)
	late, took := since(on.manager.Lateness(), before), time.Since(began)
	endProfile()

	f := figures{MaxRSS: maxRSS(), Rate: float64(late.Count) / took.Seconds()}
	f.P50, f.P99 = quantile(late, 0.5), quantile(late, 0.99)
	if _, f.Failed = on.counts(); f.Failed > 0 {
		f.Because = on.why()
	}
	return f, nil
}

// since returns the observations between two copies of a histogram.
func since(now, before prober.Histogram) prober.Histogram {
	counts := map[int32]uint64{}
	for _, b := range before.Native {
		counts[atSchema(b.Index, before.Schema, now.Schema)] += b.Count
	}
	now.Count -= before.Count
	now.Zero -= before.Zero
	for i := range now.Native {
		now.Native[i].Count -= counts[now.Native[i].Index]
	}
	return now
}

// atSchema converts the index of a bucket to a coarser schema.
func atSchema(index, from, to int32) int32 {
	for ; from > to; from-- {
		index = (index + 1) >> 1
	}
	return index
}

// quantile returns the upper bound, in seconds, of the bucket with the q-quantile.
func quantile(h prober.Histogram, q float64) float64 {
	rank := uint64(math.Ceil(q * float64(h.Count)))
	sum := h.Zero
	if sum >= rank {
		return 0
	}
	for _, b := range h.Native {
		if sum += b.Count; sum >= rank {
			return math.Exp2(float64(b.Index) / math.Exp2(float64(h.Schema)))
		}
	}
	return math.NaN()
}

// profile writes a CPU profile until the caller calls end.
func profile(path string) (end func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a reader of the profile notices if it is cut short
	}, nil
}

// heapProfile writes a profile of the heap.
func heapProfile(path string) error {
	settled()
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create a profile: %w", err)
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

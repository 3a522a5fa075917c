// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"iter"
	"math"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// This file computes how many attempts may be in flight from the limit of open files.

// unknownOpenFiles stands in for a limit of open files that the agent cannot read.
const unknownOpenFiles = 4096

// HighestInFlight is the highest Options.MaxInFlight: a command that no kill ends occupies a
// thread, and the Go runtime ends a process with 10,000 threads.
const HighestInFlight = 8000

// keptFiles is how many open files are reserved for listeners, logs, sources, files, and
// starting commands. Attempts may use one in attemptShare of the others; the connections of
// clients have a quarter of the limit.
const keptFiles, attemptShare = 48, 2

// most returns what all attempts may take under a limit of open files and of attempts in
// flight; maxInFlight 0 means HighestInFlight.
func most(openFiles, maxInFlight int) load {
	if maxInFlight <= 0 || maxInFlight > HighestInFlight {
		maxInFlight = HighestInFlight
	}
	return load{attempts: maxInFlight, files: max(1, (openFiles-keptFiles)/attemptShare)}
}

// OpenFilesFor returns the limit of open files with which all probes of a configuration, or
// maxInFlight of them if that is fewer, can hang at the same time and no probe waits for
// another.
func OpenFilesFor(cfg *config.Config, maxInFlight int) int {
	probes, files := 0, 0
	for t, p := range probesOf(cfg) {
		probes++
		files += filesOf(t, p)
	}
	if highest := most(0, maxInFlight).attempts; probes > highest {
		files = files * highest / probes
	}
	return keptFiles + attemptShare*files*shares[answering]/shares[hanging]
}

// HangingEvery returns the interval at which each probe of a configuration gets an attempt if
// all attempts time out, under a limit of open files.
func HangingEvery(cfg *config.Config, openFiles, maxInFlight int) time.Duration {
	limit := newSlots(most(openFiles, maxInFlight)).limit[hanging]
	var files, attempts float64 // file-seconds and attempt-seconds of one round
	for t, p := range probesOf(cfg) {
		attempts += p.Timeout.Seconds()
		files += p.Timeout.Seconds() * float64(filesOf(t, p))
	}
	every := max(files/float64(max(limit.files, 1)), attempts/float64(max(limit.attempts, 1)))
	return time.Duration(min(every, math.MaxInt32) * float64(time.Second))
}

// probesOf yields every probe of a configuration, and its target.
func probesOf(cfg *config.Config) iter.Seq2[*config.Target, *config.Probe] {
	return func(yield func(*config.Target, *config.Probe) bool) {
		for i := range cfg.Targets {
			t := &cfg.Targets[i]
			for _, p := range t.All() {
				if !yield(t, p) {
					return
				}
			}
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"iter"
	"math"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// This file says how many attempts may be in flight: as many as there are files for.

// unknownOpenFiles stands for a limit of open files that cannot be read.
const unknownOpenFiles = 4096

// HighestInFlight is the highest Options.MaxInFlight: a command that not even a kill
// ends occupies a thread until it does, and the Go runtime ends a process at 10,000.
const HighestInFlight = 8000

// keptFiles are kept back for listeners, logs, sources and files, and what starts a
// command. Of the others attempts have one in attemptShare: connections of clients have
// a quarter of the limit.
const keptFiles, attemptShare = 48, 2

// most returns what all attempts may take at a limit of open files, and of attempts in
// flight, which may be 0.
func most(openFiles, maxInFlight int) load {
	if maxInFlight <= 0 || maxInFlight > HighestInFlight {
		maxInFlight = HighestInFlight
	}
	return load{attempts: maxInFlight, files: max(1, (openFiles-keptFiles)/attemptShare)}
}

// OpenFilesFor returns which limit of open files lets all probes of a configuration hang
// at the same time, or as many of them as there can be, so that none waits for another.
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

// HangingEvery returns how often each probe of a configuration gets an attempt if all of
// them time out, at a limit of open files.
func HangingEvery(cfg *config.Config, openFiles, maxInFlight int) time.Duration {
	limit := newSlots(most(openFiles, maxInFlight)).limit[hanging]
	var files, attempts float64 // seconds for which one is held
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
			for _, k := range gate.Kinds() {
				if p := t.Probe(k); p != nil && !yield(t, p) {
					return
				}
			}
		}
	}
}

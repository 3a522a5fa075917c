// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"iter"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

const (
	// sparingGOGC is GOGC unless the environment sets it. A sidecar's live heap is small, and
	// most of its other memory is room for garbage: this value saves about half of that room
	// and costs no CPU time worth naming. Lower values save no more.
	sparingGOGC = 50

	// busyGOGC is GOGC for busy attempts a second and more. A TLS handshake leaves 40 kB of
	// garbage: with little room the collector would use a seventh of the CPU time.
	busyGOGC = 100
	busy     = 100

	// softShare is the part of the cgroup's limit that is the soft limit of the Go runtime.
	// The rest is for what the runtime does not count: the binary's pages, and the commands
	// of exec probes.
	softShare = 0.8

	// leastSoftLimit is the lowest soft limit, in bytes: the total need of a small agent.
	// Below this limit the runtime would collect all the time, and probes would be late.
	leastSoftLimit = 16 << 20
)

// probesOf yields every probe of a configuration.
func probesOf(cfg *config.Config) iter.Seq[*config.Probe] {
	return func(yield func(*config.Probe) bool) {
		for i := range cfg.Targets {
			for _, p := range cfg.Targets[i].All() {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// gogcFor returns GOGC for a configuration.
func gogcFor(cfg *config.Config) int {
	perSecond := 0.0
	for p := range probesOf(cfg) {
		perSecond += 1 / p.Period.Seconds()
	}
	if perSecond >= busy {
		return busyGOGC
	}
	return sparingGOGC
}

// limitMemory sets GOGC and GOMEMLIMIT unless the environment does; GOMEMLIMIT comes from the
// limit that cgroup returns, in bytes.
func limitMemory(log *slog.Logger, cgroup func() (uint64, error)) {
	var set []any
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(sparingGOGC)
		set = append(set, "GOGC", sparingGOGC)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		limit, err := cgroup()
		switch {
		case err == nil:
			soft := softLimit(limit)
			debug.SetMemoryLimit(soft)
			set = append(set, "GOMEMLIMIT", soft, "cgroup_limit", limit)
		case !errors.Is(err, memlimit.ErrNoLimit):
			log.Debug("no memory limit found in the cgroup", "reason", err)
		}
	}
	if set == nil {
		log.Debug("memory limits are those of the environment")
		return
	}
	log.Info("memory limits set", set...)
}

// softLimit returns the soft limit for a hard limit, both in bytes.
func softLimit(hard uint64) int64 {
	soft := softShare * float64(min(hard, math.MaxInt64/2))
	return max(int64(soft), leastSoftLimit)
}

// fewFiles is the limit of open files below which many clients, or hanging targets, make
// others wait, however few probes there are.
const fewFiles = 256

// filesFor returns the limit of open files that a configuration needs.
func filesFor(cfg *config.Config, maxInFlight int) int {
	return max(fewFiles, prober.OpenFilesFor(cfg, maxInFlight))
}

// warnOfFiles warns if the limit of open files is too low for a configuration, and names the
// consequences. The Go runtime has already raised the limit as far as it can.
func (l *loader) warnOfFiles(cfg *config.Config) {
	limit, needed := prober.OpenFiles(), filesFor(cfg, l.maxInFlight)
	if limit >= needed || needed <= l.filesWarned {
		return
	}
	l.filesWarned = needed
	every := prober.HangingEvery(cfg, limit, l.maxInFlight)
	l.note(func() {
		l.log.Warn("the limit of open files is low: if all targets hang, attempts at them wait for each other and clients wait for connections; attempts at targets that answer do not wait",
			"limit", limit, "needed", needed, "hanging_attempted_every", every.Round(100*time.Millisecond).String())
	})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package instance knows who is being probed: a source keeps a view of the
// instances of a target, one life each, so that a restart can be told.
package instance

import (
	"context"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// Source keeps a view of the instances behind targets.
type Source interface {
	// Instance returns the instance of a target as it is seen now. It never blocks.
	Instance(target string) gate.Instance
}

// Watcher is a source that looks for itself. It serves any number of targets, which
// come and go while it runs.
type Watcher interface {
	Source

	// Watch begins to watch a target, or goes on under its changed configuration,
	// which keeps the instance that was seen. A look that asks nobody but the kernel is
	// taken at once, so that the first turn of a probe knows the instance.
	Watch(t *config.Target)

	// Forget ends that.
	Forget(target string)

	// Run keeps the view up to date until ctx is done, and calls changed after each
	// change of what Instance or Describe returns. Whoever starts it waits for it.
	// It returns an error only if it cannot go on. Trouble of the moment is not that:
	// the last view stays, Up says so, and so does the log, once a change.
	Run(ctx context.Context, changed func(target string)) error

	// Up reports whether the source sees what it is asked to watch.
	Up() bool

	// Describe returns what is known of an instance beyond what the probes need.
	// It never blocks.
	Describe(target string) Details
}

// Details are for the reader of a log or a page. The zero value: nothing is known.
type Details struct {
	// PID is the process, in the agent's own process namespace; 0: not known.
	PID int
	// ExitCode is that of the last end of the target; nil: none is known.
	ExitCode *int
	// OOMKilled says that it ended because memory ran out.
	OOMKilled bool
	// Paused says that the instance is frozen: it is neither probed nor judged.
	Paused bool
	// Message says in a line what is wrong or particular; empty: nothing.
	Message string
}

const (
	// lookShare bounds what looks of a source may cost: they come no closer than so many
	// times as long as one takes. But a look may only seem to take long, in an agent that
	// was frozen meanwhile: maxLookGap bounds how long none is taken.
	lookShare  = 10
	maxLookGap = time.Second
)

// LookGap returns how long to leave between two looks of that cost.
func LookGap(cost time.Duration) time.Duration { return min(lookShare*cost, maxLookGap) }

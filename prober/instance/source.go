// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package instance knows who is being probed: a source keeps a view of the
// instances of a target, one life each, so that a restart can be told.
package instance

import (
	"context"
	"io"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// Source keeps a view of the instances behind targets. A source embeds Defaults and adds
// what it can do. Look may take a while. All other methods return at once, and the caller
// may hold locks of its own.
type Source interface {
	// Instance returns the instance of a target as the source sees it now.
	Instance(target string) gate.Instance

	// Describe returns what is known of an instance beyond what the probes need.
	Describe(target string) Details

	// Up reports whether the source sees what it is asked to watch.
	Up() bool

	// CanLook reports whether the source can look when it is asked to.
	CanLook() bool

	// Look takes a fresh look at all targets, so that Instance returns what there is now.
	// It returns early when ctx is done. A worker asks for a look after an attempt that did
	// not succeed, so that the source sees the end of an instance before the consequences
	// of the end count; and until the first success of a probe, which proves that there is
	// something to see.
	Look(ctx context.Context)

	// AttemptFailed tells a source that can look that an attempt at a target has failed.
	// The worker calls Look after it.
	AttemptFailed(target string)

	// InDoubt reports that nobody knows whether a target has ended, and that an attempt
	// would tell.
	InDoubt(target string) bool

	// Asked tells the source that a kubelet asks about a target, and since when the
	// container of the target must have run.
	Asked(target string, since time.Time)

	// Held tells the source whether a probe of a target is held. Meanwhile the source may
	// watch more closely.
	Held(target string, held bool)

	// Declare makes the next instance of a target that has ended begin now. It reports
	// whether an instance has begun.
	Declare(target string) bool

	// Ended tells the source that a target, which the source has not seen yet, had ended
	// before the source began to watch it.
	Ended(target string)

	// Runner returns what runs commands where the targets run. It returns nil if the source
	// has no way to do so.
	Runner() Runner
}

// Runner runs commands inside the containers of targets. The actions that use a Runner
// say what its results mean.
type Runner interface {
	Exec(ctx context.Context, target string, command, env []string, output io.Writer) (exitCode int, err error)
}

// Defaults is what a source does that can do no more than return instances.
type Defaults struct{}

// Describe returns that nothing is known.
func (Defaults) Describe(string) Details { return Details{} }

// Up returns true.
func (Defaults) Up() bool { return true }

// CanLook returns false.
func (Defaults) CanLook() bool { return false }

// Look does nothing.
func (Defaults) Look(context.Context) {}

// AttemptFailed does nothing.
func (Defaults) AttemptFailed(string) {}

// InDoubt returns false.
func (Defaults) InDoubt(string) bool { return false }

// Asked does nothing.
func (Defaults) Asked(string, time.Time) {}

// Held does nothing.
func (Defaults) Held(string, bool) {}

// Declare returns false.
func (Defaults) Declare(string) bool { return false }

// Ended does nothing.
func (Defaults) Ended(string) {}

// Runner returns nil.
func (Defaults) Runner() Runner { return nil }

// Watcher is a source that looks for itself. It serves any number of targets, which
// come and go while it runs.
type Watcher interface {
	Source

	// Watch begins to watch a target, or goes on under its changed configuration, which
	// keeps the instance that was seen. A look that asks nobody but the kernel is taken at
	// once, so that the first turn of a probe knows the instance.
	Watch(t *config.Target)

	// Forget ends the watch of a target.
	Forget(target string)

	// Run keeps the view up to date until ctx is done, and calls changed after each change
	// of what Instance or Describe returns. Whoever starts Run waits for it. Run returns an
	// error only if the source cannot go on. In trouble of the moment the last view stays,
	// Up returns false, and the log says so once for each change.
	Run(ctx context.Context, changed func(target string)) error
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
	// lookShare bounds the cost of a source's looks: the time between two looks is at least
	// lookShare times the duration of a look. A look may also seem to take long because the
	// agent was frozen: so the time between two looks need not exceed maxLookGap.
	lookShare  = 10
	maxLookGap = time.Second
)

// LookGap returns how long to leave between two looks of that cost.
func LookGap(cost time.Duration) time.Duration { return min(lookShare*cost, maxLookGap) }

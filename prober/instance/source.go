// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package instance defines sources, which see the instances of targets and tell one instance
// from the next, so that the agent notices restarts.
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

	// Describe returns what the source knows of an instance beyond what the probes need.
	Describe(target string) Details

	// Up reports whether the source can see its targets.
	Up() bool

	// Sees reports whether Instance returns what the source sees of this target now, and not
	// the last view of a time when it could look.
	Sees(target string) bool

	// CanLook reports whether Look does anything.
	CanLook() bool

	// Look takes a fresh look at all targets, so that Instance returns the current instance.
	// It returns early when ctx is done. A worker calls Look after an attempt that did not
	// succeed, so that the source sees the end of an instance before its failures count; and
	// after each attempt until the first success, which proves that the instance runs.
	Look(ctx context.Context)

	// AttemptFailed tells a source that can look that an attempt at a target has failed.
	// The worker calls Look after it.
	AttemptFailed(target string)

	// InDoubt reports that the source does not know whether a target has ended, and that an
	// attempt would tell.
	InDoubt(target string) bool

	// Asked tells the source that the kubelet asks about a target, whose container must have
	// run since the given time at the latest.
	Asked(target string, since time.Time)

	// Held tells the source whether a probe of a target is held. Meanwhile the source may
	// watch more closely.
	Held(target string, held bool)

	// Declare makes the next instance of a target that has ended begin now. It reports
	// whether an instance has begun.
	Declare(target string) bool

	// Ended tells the source that a target that the source has not seen yet had ended before
	// the source began to watch it.
	Ended(target string)

	// Runner returns the Runner for commands inside the targets; nil if the source has none.
	Runner() Runner
}

// Runner runs commands inside the containers of targets. The actions that use a Runner
// say what its results mean.
type Runner interface {
	Exec(ctx context.Context, target string, command, env []string, output io.Writer) (exitCode int, err error)
}

// Defaults implements the methods of a source that can only return instances.
type Defaults struct{}

// Describe returns zero Details.
func (Defaults) Describe(string) Details { return Details{} }

// Up returns true.
func (Defaults) Up() bool { return true }

// Sees returns true.
func (Defaults) Sees(string) bool { return true }

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

// Watcher is a source with a goroutine of its own, Run. A Watcher serves any number of
// targets, which come and go while it runs.
type Watcher interface {
	Source

	// Watch begins to watch a target. For a target that is watched already, Watch changes the
	// configuration and keeps the instance. A source that needs only the kernel looks at once,
	// so that the first turn of a probe knows the instance.
	Watch(t *config.Target)

	// Forget ends the watch of a target.
	Forget(target string)

	// Run keeps the view up to date until ctx is done, and calls changed after each change
	// of what Instance or Describe returns. Run returns an error only if the source cannot go
	// on. During passing trouble the last view stays and Up returns false; Run logs each
	// change once.
	Run(ctx context.Context, changed func(target string)) error
}

// Details are for the reader of a log or a page. In the zero value everything is unknown.
type Details struct {
	// PID is the process ID in the agent's own process namespace; 0 if unknown.
	PID int
	// ExitCode is the exit code of the target's last end; nil if unknown.
	ExitCode *int
	// OOMKilled says that the target ended because memory ran out.
	OOMKilled bool
	// Paused says that the instance is frozen, and therefore neither probed nor judged.
	Paused bool
	// Stopping is when somebody last asked the instance to end, by its stop signal or by a kill;
	// the zero time if the source knows of nobody, or if the instance has outlived that for so
	// long that it goes on.
	Stopping time.Time
	// Message says in one line what is wrong or special; empty if nothing is.
	Message string
}

const (
	// lookShare bounds the cost of a source's looks: two looks are at least lookShare times
	// the duration of a look apart, but never more than maxLookGap, because a look also
	// seems long if the agent was frozen.
	lookShare  = 10
	maxLookGap = time.Second
)

// LookGap returns the time between two looks of a cost.
func LookGap(cost time.Duration) time.Duration { return min(lookShare*cost, maxLookGap) }

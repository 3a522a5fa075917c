// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package restart restarts the targets that are not live, in the way that the file says: by a
// signal, by the Docker Engine, by systemd or by a command. Nothing here judges a target. The
// verdict is a published Failure of a startup or liveness probe (prober.TargetStatus), and an
// act is what a Restarter does about that verdict, at most one at a time for each target and
// never sooner than the back-off allows.
package restart

import (
	"log/slog"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// Options configures a Restarter.
type Options struct {
	Prober *prober.Manager
	// Logger gets a line for each act; nil discards them.
	Logger *slog.Logger
	// Told is called when an act begins, with an Act whose Result is empty, and when the act has
	// ended. It must return at once. It may be nil.
	Told func(target string, a Act)
}

// Restarter acts for the targets that have a restart block. While no target has one, it has no
// goroutine and no subscription.
type Restarter struct {
	o Options
}

// Result is how an act ended: the value of a metric's label.
type Result string

// The results. An act that is under way has none.
const (
	Succeeded Result = "succeeded"
	Failed    Result = "failed"
	// Stale says that nothing was done: the verdict did not stand any more, or nobody could
	// tell whether it did.
	Stale Result = "stale"
	// DryRun says that nothing was done because the file says so.
	DryRun Result = "dry_run"
)

// Results returns all results.
func Results() [4]Result { return [...]Result{Succeeded, Failed, Stale, DryRun} }

// Act is one act, or one that was dropped.
type Act struct {
	// Began is when the act began. Duration is how long it took, or has taken so far.
	Began    time.Time
	Duration time.Duration
	// Instance is the ID of the instance that the verdict is about.
	Instance string
	// Kind is the probe that gave the verdict. Reason and Output are those of its last failure,
	// and Failures counts the failures in a row, of which Threshold make a Failure.
	Kind      gate.Kind
	Reason    action.Reason
	Output    string // cut, and without secrets
	Failures  uint64
	Threshold int
	// Handler is what acted: signal, docker, systemd or exec.
	Handler string
	Result  Result // empty while the act is under way
	// Message says in one line what was done, or why not; cut, and without secrets.
	Message string
}

// Status is the state of the Restarter at one moment. The caller owns the Status.
type Status struct {
	// Targets has an entry for each target with a restart block, in the order of the
	// configuration.
	Targets []TargetStatus
}

// TargetStatus is the state of one target that has a restart block.
type TargetStatus struct {
	Name   string
	Labels []config.Label // sorted by name

	// Handler is how the target is restarted: signal, docker, systemd or exec.
	Handler string
	DryRun  bool

	// Current is the act that is under way; nil if there is none.
	Current *Act
	// Wanted says that a verdict stands and no act is under way: the next act begins as soon as
	// the back-off and the limit allow.
	Wanted bool
	// NotBefore is when the next act may begin, by the back-off and the limit; the zero time if
	// at once. Left is how long that is from now.
	NotBefore time.Time
	Left      time.Duration
	// BackOff is the length of the present back-off, and BackOffLeft what is left of it: 0
	// without. BackOffs counts the back-offs in a row: 3 for the third. After the start of
	// the agent, 0 stands for the wait before the first act.
	BackOff, BackOffLeft time.Duration
	BackOffs             int
	// Limit is the file's limit. Limited says that it is spent, and LimitedUntil until when.
	Limit        config.Limit
	Limited      bool
	LimitedUntil time.Time

	// Acts are the last acts, oldest first, without Current.
	Acts []Act
	// Counts counts the acts by result.
	Counts Counts
}

// Counts counts acts by result.
type Counts struct{ Succeeded, Failed, Stale, DryRun uint64 }

// Of returns the count of a result.
func (c Counts) Of(r Result) uint64 {
	switch r {
	case Succeeded:
		return c.Succeeded
	case Failed:
		return c.Failed
	case Stale:
		return c.Stale
	case DryRun:
		return c.DryRun
	}
	return 0
}

// New returns a Restarter without targets.
func New(o Options) *Restarter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Restarter{o: o}
}

// Apply makes cfg the configuration. The caller has applied cfg to the Manager before.
func (r *Restarter) Apply(*config.Config) {}

// Status returns the state of all targets that have a restart block.
func (r *Restarter) Status() Status { return Status{} }

// Target returns the state of one target, and whether the target has a restart block.
func (r *Restarter) Target(string) (TargetStatus, bool) { return TargetStatus{}, false }

// Stop ends acting: from now on no act begins, and one that is under way is cut short in the
// way that its handler says. Stop waits for nothing.
func (r *Restarter) Stop() {}

// Close stops, and waits until every act has ended.
func (r *Restarter) Close() {}

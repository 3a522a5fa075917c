// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// maxTries is how often an attempt that could not be made is tried (rule 7.2).
const maxTries = 3

// How many bytes of an output, a body and an address are logged: of a success just enough
// to know it again. maxAddress and maxMessage are how many of an address and of a source's
// message are shown at all.
const (
	maxLoggedOutput  = 256
	maxLoggedSuccess = 64
	maxAddress       = 512
	maxMessage       = 4 << 10
)

// errPanic stands for an attempt that ended in a panic.
var errPanic = errors.New("panic in the action")

// tried is what an attempt came to.
type tried struct {
	action.Outcome
	// err says that the attempt says nothing of the target and is dropped.
	err error
}

// try makes an attempt, again only if it could not be made, each time under the
// full timeout (rules 7.2 and 7.3).
func (w *worker) try(ctx context.Context) (made tried) {
	w.target.m.inFlight.Add(1)
	defer w.target.m.inFlight.Add(-1)
	for range maxTries {
		made = w.tryOnce(ctx)
		if made.err == nil || errors.Is(made.err, errPanic) || ctx.Err() != nil {
			break
		}
	}
	return made
}

// tryOnce runs the action once.
func (w *worker) tryOnce(ctx context.Context) (made tried) {
	defer func() {
		if r := recover(); r != nil {
			w.target.m.panics.Add(1)
			text := w.target.scrub.Clean(fmt.Sprint(r), maxFailureOutput)
			w.logger().Error("panic in an attempt", "panic", text, "stack", string(debug.Stack()))
			made = tried{Outcome: action.Outcome{Reason: action.Other}, err: errPanic}
		}
	}()
	made.Outcome, made.err = w.attempt(ctx)
	return made
}

// outcome is how the attempt counts.
func (made *tried) outcome() AttemptOutcome {
	switch {
	case made.err != nil:
		return UnknownOutcome
	case made.Success:
		return Successful
	}
	return Failed
}

// result is what the thresholds count.
func (made *tried) result() gate.Result {
	if made.Success {
		return gate.Success
	}
	return gate.Failure
}

// fold adds an attempt to all that is known of the probe, with target.mu held. changes
// are those of the instance when it began. It returns what is to be logged.
func (w *worker) fold(made tried, changes uint64, began, ended time.Time) (entries []entry) {
	t := w.target
	if made.err != nil && made.Output == "" {
		made.Output = made.err.Error()
	}
	if made.Reason == "" && !made.Success {
		made.Reason = action.Other
	}
	outcome := made.outcome()
	w.clean(&made)
	w.lastRun = ended.UnixNano()
	w.count(outcome, made.Reason, ended.Sub(began))
	w.history.add(record{
		start:    began.UnixNano(),
		duration: ended.Sub(began),
		reason:   made.Reason,
		output:   made.Output,
		body:     made.Body,
		address:  made.Address,
		exitCode: made.ExitCode,
		outcome:  outcome,
		warning:  made.Warning,
	})

	inst := t.instance()
	entries = t.take(inst, ended)
	before := t.state.Probe(w.kind)
	if changes != t.life.changes {
		// What it was made for has ended, was frozen, or was replaced: of what there is
		// now it says nothing. Only the run passes to the next instance (rule 4.22).
		if made.err == nil && before.InstanceID != inst.ID {
			t.state = t.state.Fold(w.kind, made.result())
		}
		return entries
	}
	note := func(level slog.Level, message string, args ...any) {
		entries = append(entries, newEntry(w.logger(), level, message, append(args, w.describe(made, before)...)...))
	}
	switch outcome {
	case Successful:
		w.history.failures.forget()
		t.state = t.state.Fold(w.kind, gate.Success)
		if made.Warning && !w.warned {
			note(slog.LevelWarn, "probe succeeded with a warning")
		}
		w.warned = made.Warning
	case Failed:
		w.history.failures.fail(made.Reason)
		w.warned = false
		t.state = t.state.Fold(w.kind, gate.Failure)
		if w.history.failures.streak == 1 {
			note(slog.LevelWarn, "probe failed")
		}
	case UnknownOutcome:
		if w.history.failures.unable != made.Reason {
			note(slog.LevelWarn, "probe could not be attempted")
		}
		w.history.failures.unable = made.Reason
	}
	if after := t.state.Probe(w.kind); after.Result != before.Result {
		w.transitions++
		note(slog.LevelInfo, "result changed", "from", before.Result.String(), "to", after.Result.String())
	}
	if t.m.log.Enabled(context.Background(), slog.LevelDebug) {
		note(slog.LevelDebug, "attempt", "outcome", outcome.String(), "duration", ended.Sub(began).String())
	}
	t.publish(inst, ended)
	return entries
}

// clean makes what a target has said fit to be kept and shown.
func (w *worker) clean(made *tried) {
	most := maxFailureOutput
	if made.outcome() == Successful {
		most = maxSuccessOutput
	}
	scrub := w.target.scrub
	made.Output = scrub.Clean(made.Output, most)
	made.Body = scrub.Clean(made.Body, maxBody)
	made.Address = scrub.Clean(made.Address, maxAddress)
}

// describe returns what a line of the log says of an attempt; before is the probe's
// state before it.
func (w *worker) describe(made tried, before gate.Probe) []any {
	var args []any
	tell := func(name, text string, most int) {
		if text != "" {
			args = append(args, name, output.Visible(output.Cut(text, most)))
		}
	}
	switch made.outcome() {
	case Successful:
		run := 1
		if before.Last == gate.Success {
			run += before.Run
		}
		args = append(args, "attempt", fraction(run, w.probe.SuccessThreshold))
		if !made.Warning {
			tell("output", made.Output, maxLoggedSuccess)
			return args
		}
	case Failed:
		args = append(args, "reason", string(made.Reason), "attempt", fraction(int(w.history.failures.streak), w.probe.FailureThreshold))
	case UnknownOutcome:
		args = append(args, "reason", string(made.Reason))
	}
	tell("output", made.Output, maxLoggedOutput)
	tell("body", made.Body, maxLoggedOutput)
	if made.ExitCode != 0 {
		args = append(args, "exit_code", made.ExitCode)
	}
	asked := made.Address
	if asked == "" {
		asked = w.address()
	}
	tell("address", asked, maxLoggedOutput)
	return args
}

// address returns what the probe asks, fit to be shown.
func (w *worker) address() string {
	return w.target.scrub.Clean(action.Address(w.target.cfg, w.probe), maxAddress)
}

// fraction says how far a run is on the way to its threshold.
func fraction(n, threshold int) string { return fmt.Sprintf("%d/%d", min(n, threshold), threshold) }

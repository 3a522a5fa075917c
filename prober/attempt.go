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

// This file makes an attempt and counts it: for the counters, the history, the gate and the
// log.

// maxTries is how often an attempt that could not be made is tried (rule 7.2).
const maxTries = 3

// The most bytes that a log line has of an output, a body or an address, and of the output
// of a success: just enough to recognise it. maxAddress and maxMessage are the most bytes of
// an address and of a source's message that the agent shows anywhere.
const (
	maxLoggedOutput  = 256
	maxLoggedSuccess = 64
	maxAddress       = 512
	maxMessage       = 4 << 10
)

var (
	// errPanic stands for an attempt that ended in a panic.
	errPanic = errors.New("panic in the action")
	// errEndless stands for an attempt that does not end.
	errEndless = errors.New("the attempt does not end")
)

// tried is the outcome of an attempt.
type tried struct {
	action.Outcome
	// err is not nil if the attempt says nothing about the target and does not count.
	err error
}

// attempt is one finished execution of an action, tries included.
type attempt struct {
	tried
	// changes is life.changes when the attempt began.
	changes      uint64
	began, ended time.Time
}

func (a *attempt) took() time.Duration { return a.ended.Sub(a.began) }

// try makes an attempt. If the attempt could not be made, try repeats it, each time with
// the full timeout (rules 7.2 and 7.3).
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
	made.Outcome, made.err = w.action(ctx)
	return made
}

// outcome returns the outcome under which the attempt counts.
func (made *tried) outcome() AttemptOutcome {
	switch {
	case made.err != nil:
		return UnknownOutcome
	case made.Success:
		return Successful
	}
	return Failed
}

// result returns the result that the thresholds count.
func (made *tried) result() gate.Result {
	if made.Success {
		return gate.Success
	}
	return gate.Failure
}

// conclude adds an attempt to the state of the probe and its target, and publishes the
// change. It returns the lines to log. The caller holds target.mu.
func (w *worker) conclude(made attempt) (entries []entry) {
	t := w.target
	w.remember(&made)
	inst := t.instance()
	entries = t.see(inst, made.ended)
	switch before := w.state(); {
	case made.changes == t.life.changes:
		entries = append(entries, w.judge(&made, before)...)
	case made.err == nil && before.InstanceID != inst.ID:
		// The attempt's instance has ended, was frozen, or was replaced: the attempt says
		// nothing about the current one. Only the run passes on (rule 4.22).
		w.fold(made.result())
	}
	t.publish(inst, made.ended)
	return entries
}

// remember cleans the target's output and adds the attempt to the counters and the history.
// The caller holds target.mu.
func (w *worker) remember(made *attempt) {
	w.tidy(&made.tried)
	w.noteExpiry(made.CertExpires)
	w.lastRun = made.ended.UnixNano()
	w.count(made.outcome(), made.Reason, made.took())
	w.noteSlow(made)
	w.history.add(record{
		start:    made.began.UnixNano(),
		duration: made.took(),
		reason:   made.Reason,
		output:   made.Output,
		body:     made.Body,
		address:  made.Address,
		exitCode: made.ExitCode,
		outcome:  made.outcome(),
		warning:  made.Warning,
	})
}

// judge counts an attempt whose instance is still the current one: towards the thresholds,
// the streak of failures and the standing. before is the probe's state so far. judge returns
// the lines to log. The caller holds target.mu.
func (w *worker) judge(made *attempt, before gate.Probe) (entries []entry) {
	t, outcome := w.target, made.outcome()
	note := func(level slog.Level, message string, args ...any) {
		entries = append(entries, newEntry(w.logger(), level, message, append(args, w.describe(made.tried, before)...)...))
	}
	switch outcome {
	case Successful:
		if f := w.history.failures; f != nil {
			w.endRun(f.streak)
		}
		w.history.failures.forget()
		w.fold(gate.Success)
		if made.Warning && !w.warned {
			note(slog.LevelWarn, "probe succeeded with a warning")
		}
		w.warned = made.Warning
	case Failed:
		w.history.failures.fail(made.Reason)
		w.noteRun(made.ended, before)
		w.warned = false
		w.fold(gate.Failure)
		if w.history.failures.streak == 1 {
			note(slog.LevelWarn, "probe failed")
			t.m.subscriptions.tellRun(t.cfg.Name)
		}
	case UnknownOutcome:
		switch {
		case w.history.failures.unable == made.Reason:
		case made.Reason == action.NoHeartbeat, made.Reason == action.HeartbeatLate:
			note(slog.LevelInfo, "probe waits for a beat") // so begins each agent
		default:
			note(slog.LevelWarn, "probe could not be attempted")
		}
		w.history.failures.unable = made.Reason
	}
	if after := w.state(); after.Result != before.Result {
		w.transitions++
		args := []any{"from", before.Result.String(), "to", after.Result.String()}
		if c, list := t.combined(w.kind, t.life.seen); list {
			args = append(args, "combined", c.String())
		}
		note(slog.LevelInfo, "result changed", args...)
	}
	if t.m.log.Enabled(context.Background(), slog.LevelDebug) {
		note(slog.LevelDebug, "attempt", "outcome", outcome.String(), "duration", made.took().String())
	}
	w.standing = w.standing.after(&made.tried, made.took())
	return entries
}

// tidy makes an outcome fit to be shown.
func (w *worker) tidy(made *tried) {
	if made.err != nil && made.Output == "" {
		made.Output = made.err.Error()
	}
	if made.Reason == "" && !made.Success {
		made.Reason = action.Other
	}
	w.clean(made)
}

// clean cuts the target's output and takes secrets out of it.
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

// describe returns the attributes of a log line about an attempt; before is the probe's
// state before the attempt.
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

// address returns the address that the probe asks, cut and without secrets.
func (w *worker) address() string {
	return w.target.scrub.Clean(addressOf(w.target.cfg, w.probe), maxAddress)
}

// fraction returns a run and its threshold as "2/3".
func fraction(n, threshold int) string { return fmt.Sprintf("%d/%d", min(n, threshold), threshold) }

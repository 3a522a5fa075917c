// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/restart"
)

// Restarter is the handlers' view of the acts; *restart.Restarter implements it.
type Restarter interface {
	// Target returns the state of a target, and whether the target has a restart block. It
	// waits for no act.
	Target(name string) (restart.TargetStatus, bool)
}

// restartOf returns the state of a target that has a restart block, nil for another.
func (s *Server) restartOf(name string) *restart.TargetStatus {
	if s.opts.Restarter == nil {
		return nil
	}
	t, ok := s.opts.Restarter.Target(name)
	if !ok {
		return nil
	}
	return &t
}

// planOf says what follows from a verdict, in words that continue "restart". It returns
// nothing while no act is wanted, and for a target without a restart block.
func planOf(t *restart.TargetStatus) string {
	switch {
	case t == nil:
		return ""
	case t.Current != nil:
		return "under way for " + age(t.Current.Duration)
	case !t.Wanted:
		return ""
	}
	plan, notes := "due", []string(nil)
	if t.Left > 0 {
		plan, notes = in(t.Left), append(notes, waitsOn(t))
	}
	if t.DryRun {
		notes = append(notes, "dry run")
	}
	if len(notes) > 0 {
		plan += " (" + strings.Join(notes, ", ") + ")"
	}
	return plan
}

// waitsOn says what the next act waits for.
func waitsOn(t *restart.TargetStatus) string {
	if waitsOnLimit(t) {
		return "limit of " + limitOf(t)
	}
	return backOffOf(t)
}

// waitsOnLimit reports whether the next act waits for the limit longer than for the back-off.
func waitsOnLimit(t *restart.TargetStatus) bool { return t.Limited && t.Left > t.BackOffLeft }

func limitOf(t *restart.TargetStatus) string {
	return fmt.Sprintf("%d in %s", t.Limit.Restarts, took(t.Limit.Window))
}

func backOffOf(t *restart.TargetStatus) string {
	if t.BackOffs == 0 {
		return "back-off " + afterStart
	}
	return "back-off, " + ordinal(t.BackOffs)
}

// afterStart is the back-off of an agent that does not know what the agent before it did.
const afterStart = "after the start of the agent"

// addRestarts adds what follows from the verdicts to a verbose answer about liveness.
func (s *Server) addRestarts(c *check, rep *report, verbose bool) {
	if c != &live || !verbose {
		return
	}
	for i := range rep.Targets {
		rep.Targets[i].Restart = planOf(s.restartOf(rep.Targets[i].Name))
	}
}

// Restart is how the agent restarts a target, and what it has done.
type Restart struct {
	// Handler is signal, docker, systemd or exec.
	Handler string `json:"handler"`
	DryRun  bool   `json:"dry_run"`
	// Wanted: the target is not live, and the next act begins at NotBefore, or at once
	// without it.
	Wanted    bool      `json:"wanted"`
	NotBefore time.Time `json:"not_before,omitzero"`
	BackOff   *BackOff  `json:"back_off,omitempty"`
	Limit     *Limit    `json:"limit,omitempty"`
	// Current is the act that is under way. Acts are the last acts that have ended, oldest
	// first.
	Current *Act  `json:"current,omitempty"`
	Acts    []Act `json:"acts"`
	// Counts counts all acts by result.
	Counts map[restart.Result]uint64 `json:"counts"`
}

// BackOff is the present back-off. Number is 3 for the third in a row, and 0 for the wait
// after the start of the agent.
type BackOff struct {
	Seconds float64 `json:"seconds"`
	Left    float64 `json:"left_seconds"`
	Number  int     `json:"number"`
}

// Limit is the limit of the file, and whether it is spent.
type Limit struct {
	Restarts int       `json:"restarts"`
	Seconds  float64   `json:"seconds"`
	Spent    bool      `json:"spent"`
	Until    time.Time `json:"spent_until,omitzero"`
}

// Act is a restart of a target, or one that was dropped.
type Act struct {
	Start    time.Time `json:"start"`
	Duration float64   `json:"duration_seconds"`
	// Handler is what acted: a reload may have changed it since.
	Handler string `json:"handler"`
	// Result is succeeded, failed, stale or dry_run, and empty while the act is under way.
	Result  restart.Result `json:"result,omitempty"`
	Message string         `json:"message,omitempty"`
	// Instance is the ID of the instance that was not live. Kind is the probe that had
	// failed, and Probe its name if the probe is a member of a list. Reason and Output are
	// those of its last failure.
	Instance  string `json:"instance_id"`
	Kind      string `json:"kind"`
	Probe     string `json:"probe,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Failures  uint64 `json:"failures"`
	Threshold int    `json:"threshold"`
	Output    string `json:"output,omitempty"`
}

func newRestart(t *restart.TargetStatus) *Restart {
	if t == nil {
		return nil
	}
	out := &Restart{
		Handler:   t.Handler,
		DryRun:    t.DryRun,
		Wanted:    t.Wanted,
		NotBefore: t.NotBefore.UTC(),
		Acts:      make([]Act, len(t.Acts)),
		Counts:    map[restart.Result]uint64{},
	}
	if t.BackOff > 0 {
		out.BackOff = &BackOff{t.BackOff.Seconds(), t.BackOffLeft.Seconds(), t.BackOffs}
	}
	if t.Limit.Restarts > 0 {
		out.Limit = &Limit{t.Limit.Restarts, t.Limit.Window.Seconds(), t.Limited, t.LimitedUntil.UTC()}
	}
	if t.Current != nil {
		out.Current = new(newAct(t.Current))
	}
	for i := range t.Acts {
		out.Acts[i] = newAct(&t.Acts[i])
	}
	for _, r := range restart.Results() {
		out.Counts[r] = t.Counts.Of(r)
	}
	return out
}

func newAct(a *restart.Act) Act {
	return Act{
		Start:     a.Began.UTC(),
		Duration:  a.Duration.Seconds(),
		Handler:   a.Handler,
		Result:    a.Result,
		Message:   a.Message,
		Instance:  a.Instance,
		Kind:      a.Kind.String(),
		Probe:     a.Probe,
		Reason:    string(a.Reason),
		Failures:  a.Failures,
		Threshold: a.Threshold,
		Output:    a.Output,
	}
}

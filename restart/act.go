// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// This file carries out one act: a last look, the handler, and what is said of them.

const (
	// lookTime bounds the last look.
	lookTime = 5 * time.Second
	// staleWait is the time after a dropped act in which the target is left alone.
	staleWait = time.Second
	// slack is how much longer than the grace period an act may last: for the start of the next
	// instance, or for the end of a process that was killed.
	slack = 30 * time.Second
	// lingerTime is how long an act that must not be cut short, because half a restart is a stop,
	// may go on when the agent stops.
	lingerTime = 5 * time.Second

	// The most bytes of a message, and of an output in the log.
	maxMessage = 256
	maxLogged  = 256
)

// stale is why an act was dropped before it had done anything.
type stale string

func (s stale) Error() string { return string(s) }

// dropped identifies a dropped act, so that the same is told once.
type dropped struct{ instance, why string }

// ours is the time of the last act: whoever asked that instance to end in that time was the agent.
type ours struct {
	instance string
	from, to time.Time
}

// isOurs reports whether the agent itself asked the instance to end at that time. An event may
// come a little late.
func (o ours) isOurs(instance string, at time.Time) bool {
	return o.instance == instance && !at.Before(o.from) && at.Before(o.to.Add(time.Second))
}

// request is what a handler needs to know.
type request struct {
	target   *config.Target
	instance string        // the ID of the instance
	grace    time.Duration // from the first signal to SIGKILL
	longest  time.Duration // how long the act may last
	linger   time.Duration // how long an act that must not be cut short goes on when the agent stops
}

// handler restarts an instance in one way.
type handler struct {
	// does says in a few words what act does, for a dry run.
	does func(q *request) string
	// act restarts the instance, and returns what it has done. The error is a stale if nothing
	// was done. act returns soon after ctx is done: see docs/architecture.md for what becomes of
	// each step.
	act func(ctx context.Context, q *request) (did string, err error)
}

// job is a verdict to act on, and the target's configuration at that moment.
type job struct {
	cfg   *config.Target
	scrub *output.Scrubber
	verdict
}

// act does a job.
func (r *Restarter) act(t *target, j job) {
	c, began := j.cfg, time.Now()
	s, _ := r.o.Prober.Target(c.Name, prober.Full)
	a := describe(j.verdict, &s, c.Restart.Handler())
	a.Began = began
	s, seen := r.look(c.Name)
	grace := c.GracePeriod(j.kind)
	q := &request{target: c, instance: j.instance, grace: grace, longest: grace + slack, linger: lingerTime}
	h := r.handlers[a.Handler]
	if r.mustBeQuiet() {
		r.cancel()
	}

	r.mu.Lock()
	before := t.pace
	why := r.whyNot(t, j, &s, seen)
	if why == "" {
		t.pace = t.pace.begin(c.Restart.BackOff, r.now())
		if !c.Restart.DryRun {
			current := a
			t.current = &current
		}
	}
	r.mu.Unlock()

	var did string
	var err error
	switch {
	case why != "":
		err = stale(why)
	case c.Restart.DryRun:
		did = "would " + h.does(q)
	default:
		r.tell(c.Name, a)
		r.log(slog.LevelWarn, "restarting the target", c.Name, &a)
		did, err = h.act(r.ctx, q)
	}
	a.Duration = time.Since(began)
	a.Result = resultOf(err, c.Restart.DryRun)
	if err != nil {
		did = err.Error()
	}
	a.Message = j.scrub.Clean(did, maxMessage)
	r.finish(t, c.Name, a, before)
}

// look takes a last look at a target.
func (r *Restarter) look(name string) (s prober.TargetStatus, seen bool) {
	ctx, cancel := context.WithTimeout(r.ctx, lookTime)
	defer cancel()
	return r.o.Prober.Look(ctx, name, prober.Full)
}

// whyNot returns why a job must not be done; empty if it may. s is the state of the target after
// the last look, and seen what the look says of the source. The caller holds mu.
func (r *Restarter) whyNot(t *target, j job, s *prober.TargetStatus, seen bool) string {
	stopping := s.Details.Stopping
	switch {
	case r.ctx.Err() != nil:
		return "the agent is stopping"
	case t.cfg != j.cfg:
		return "the file has changed"
	case !seen:
		return "the source does not see the instance"
	case s.Instance.ID != j.instance:
		return "the instance has been replaced"
	case s.Details.Paused:
		return "the instance is paused"
	case s.Instance.Deleting:
		return "the instance is being deleted"
	case verdictOn(s).instance != j.instance:
		return "the verdict does not stand any more"
	case !stopping.IsZero() && !t.ours.isOurs(j.instance, stopping):
		return "somebody is stopping the instance"
	}
	return ""
}

// resultOf returns the result of an act that ended with err.
func resultOf(err error, dryRun bool) Result {
	var dropped stale
	switch {
	case errors.As(err, &dropped):
		return Stale
	case err != nil:
		return Failed
	case dryRun:
		return DryRun
	}
	return Succeeded
}

// finish records the end of an act. before is the pace without the act.
func (r *Restarter) finish(t *target, name string, a Act, before pace) {
	r.mu.Lock()
	now := r.now()
	news := true
	switch a.Result {
	case Stale:
		t.pace, t.retry = before, now+staleWait
		this := dropped{a.Instance, a.Message}
		news = t.last != this
		t.last = this
	case Succeeded, Failed, DryRun:
		t.pace = t.pace.end(now)
		t.ours = ours{instance: a.Instance, from: a.Began, to: a.Began.Add(a.Duration)}
		t.last = dropped{}
	}
	if news {
		t.remember(a)
	}
	t.current, t.busy = nil, false
	r.mu.Unlock()
	if news {
		r.logEnd(name, &a)
		r.tell(name, a)
	}
	r.wakeUp()
}

// tell tells whoever wants to know of acts.
func (r *Restarter) tell(name string, a Act) {
	if r.o.Told != nil {
		r.o.Told(name, a)
	}
}

// logEnd logs how an act ended.
func (r *Restarter) logEnd(name string, a *Act) {
	switch a.Result {
	case Stale:
		r.log(slog.LevelInfo, "restart dropped", name, a)
	case DryRun:
		r.log(slog.LevelWarn, "dry run: the target would be restarted", name, a)
	case Failed:
		r.o.Logger.Error("restart failed", "target", name, "instance_id", a.Instance, "duration", a.Duration.String(), "err", a.Message)
	case Succeeded:
		r.o.Logger.Info("restart done", "target", name, "instance_id", a.Instance, "duration", a.Duration.String(), "did", a.Message)
	}
}

// log logs an act with its verdict.
func (r *Restarter) log(level slog.Level, message, name string, a *Act) {
	args := []any{
		"target", name, "instance_id", a.Instance, "probe_type", prober.ProbeType(a.Kind), "reason", string(a.Reason),
		"attempt", fmt.Sprintf("%d/%d", min(a.Failures, uint64(a.Threshold)), a.Threshold), "handler", a.Handler,
	}
	if a.Output != "" {
		args = append(args, "output", output.Visible(output.Cut(a.Output, maxLogged)))
	}
	if a.Message != "" {
		args = append(args, "message", a.Message)
	}
	r.o.Logger.Log(context.Background(), level, message, args...)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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

	// maxMessage is the most bytes of a message.
	maxMessage = 256
)

// stale is why an act was dropped before it had done anything.
type stale string

func (s stale) Error() string { return string(s) }

const (
	withdrawn stale = "the verdict does not stand any more"
	shutdown  stale = "the agent is stopping, or its pod is"
)

// errStopping is the cause of the end of all acts.
var errStopping = errors.New(string(shutdown))

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

	// begin must be called right before the first thing that anybody could notice. An error
	// says that there must be no such thing.
	begin func() error
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
	grace := c.GracePeriod(j.kind, j.probe)
	q := &request{target: c, instance: j.instance, grace: grace, longest: grace + slack, linger: lingerTime}
	q.begin = func() error { return r.begin(t, j, a) }
	did, err := r.attempt(t, j, q)
	a.Duration = time.Since(began)
	a.Result = resultOf(err, c.Restart.DryRun)
	if err != nil {
		did = err.Error()
	}
	a.Message = output.Visible(j.scrub.Clean(did, maxMessage))
	r.finish(t, c, a)
}

// attempt takes the last look and, if the verdict stands, lets the handler act. A panic is a
// failure of the act, and not the end of the agent.
func (r *Restarter) attempt(t *target, j job, q *request) (did string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.o.Logger.Error("panic in an act", "target", j.cfg.Name, "stack", string(debug.Stack()))
		}
	}()
	s, seen := r.look(j.cfg.Name)
	if r.mustBeQuiet() {
		r.cancel()
	}
	r.mu.Lock()
	err = r.whyNot(t, j, &s, seen)
	r.mu.Unlock()
	h := r.handlers[j.cfg.Restart.Handler()]
	switch {
	case err != nil:
		return "", err
	case j.cfg.Restart.DryRun:
		return "would " + h.does(q), nil
	}
	return h.act(r.ctx, q)
}

// begin records that an act is under way, and tells of it. A job whose verdict was withdrawn while
// the handler looked is dropped, and so is one whose looks took so long that the agent must have
// been frozen.
func (r *Restarter) begin(t *target, j job, a Act) error {
	s, _ := r.o.Prober.Target(j.cfg.Name, prober.Brief)
	r.mu.Lock()
	err := r.superseded(t, j)
	if err == nil && verdictOn(&s).instance != j.instance {
		err = withdrawn
	}
	if took := time.Since(a.Began); err == nil && took > lookTime+askTime+time.Second {
		err = stale("the last look is too old")
	}
	if err != nil {
		r.mu.Unlock()
		return err
	}
	t.pace = t.pace.begin(j.cfg.Restart.BackOff, r.now())
	t.current = &a
	r.mu.Unlock()
	r.o.Logger.Warn("restarting the target", a.attributes(j.cfg.Name)...)
	r.tell(j.cfg.Name, a)
	return nil
}

// look takes a last look at a target.
func (r *Restarter) look(name string) (s prober.TargetStatus, seen bool) {
	ctx, cancel := context.WithTimeout(r.ctx, lookTime)
	defer cancel()
	return r.o.Prober.Look(ctx, name, prober.Full)
}

// whyNot returns why a job must not be done; nil if it may. s is the state of the target after
// the last look, and seen what the look says of the source. The caller holds mu.
func (r *Restarter) whyNot(t *target, j job, s *prober.TargetStatus, seen bool) error {
	stopping := s.Details.Stopping
	if err := r.superseded(t, j); err != nil {
		return err
	}
	switch {
	case !seen:
		return stale("the source does not see the instance")
	case s.Instance.ID != j.instance:
		return stale("the instance has been replaced")
	case s.Details.Paused:
		return stale("the instance is paused")
	case s.Instance.Deleting:
		return stale("the instance is being deleted")
	case verdictOn(s).instance != j.instance:
		return withdrawn
	case !stopping.IsZero() && !t.ours.isOurs(j.instance, stopping):
		return stale("somebody is stopping the instance")
	}
	return nil
}

// superseded returns why a job is not wanted any more; nil if it is. The caller holds mu.
func (r *Restarter) superseded(t *target, j job) error {
	switch {
	case r.ctx.Err() != nil:
		return shutdown
	case t.cfg != j.cfg, t.former, r.suspended:
		return stale("the file has changed")
	case r.notBeforeOthers(t, j.instance) > r.now():
		return stale("another target has restarted the same instance")
	}
	return nil
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

// finish records the end of an act. One that was dropped before it had begun is nothing to the
// back-off.
func (r *Restarter) finish(t *target, c *config.Target, a Act) {
	r.mu.Lock()
	now, begun, news := r.now(), t.current != nil, true
	if a.Result == Stale && !begun {
		t.retry = now + staleWait
		this := dropped{a.Instance, a.Message}
		news = t.last != this
		t.last = this
	} else {
		if !begun {
			t.pace = t.pace.begin(c.Restart.BackOff, now)
		}
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
		r.logEnd(c.Name, &a, begun)
		r.tell(c.Name, a)
	}
	r.wakeUp()
}

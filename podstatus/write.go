// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"context"
	"errors"
	"time"

	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// sync writes those words that the pod does not say.
func (r *run) sync(ctx context.Context, words []word, reconcile bool, now time.Time) error {
	p := r.o.Pod.Pod()
	switch {
	case r.over:
		return nil
	case len(words) == 0:
		r.synced.Store(!r.lacking)
		return nil
	case p == nil:
		r.synced.Store(false)
		return nil
	case p.Gone:
		r.ends()
		return nil
	}
	is := r.is(p, reconcile)
	write := plan(words, is, now)
	if len(write) == 0 {
		r.synced.Store(!r.lacking) // which says nothing about the API server: a back-off goes on
		return nil
	}
	if now.Before(r.retry) {
		r.synced.Store(false)
		r.lookBy(r.retry)
		return nil
	}
	return r.write(ctx, p, write, is)
}

// is returns what the pod says: what the API server answered last or, when it is time to
// compare and the watch has shown something newer since, what the watch shows. After a lost
// answer only the watch knows, and until the watch shows something newer the condition counts as
// not there, so that the condition is written again.
func (r *run) is(p *kubernetes.Pod, reconcile bool) view {
	shown, up := conditions(p), r.o.Pod.Up()
	return func(kind string) (kubernetes.PodCondition, bool) {
		said, spoken := r.memory.said[kind]
		seen, there := shown[kind]
		newer := up && p != said.shown
		switch {
		case !spoken || newer && said.lost:
			return seen, there
		case said.lost:
			return said.PodCondition, false
		case !newer || !reconcile:
			return said.PodCondition, true
		case !there: // somebody has removed the condition: the condition comes back unchanged
			return said.PodCondition, false
		}
		return seen, true
	}
}

// write patches the status of the pod, whose conditions are those of is.
func (r *run) write(ctx context.Context, p *kubernetes.Pod, write []kubernetes.PodCondition, is view) error {
	r.wroteAt = time.Now()
	client := r.o.Pod.Client()
	self, err := client.Self()
	if err == nil {
		var after kubernetes.Pod
		if err = client.PatchStatus(ctx, self, statusPatch(p.Metadata.UID, write), &after); err == nil {
			r.counts.conditions.Add(1)
			r.wrote(p, write, &after)
			return nil
		}
		if e, ok := errors.AsType[*kubernetes.Error](err); !ok || !e.Refused {
			r.doubt(p, write, is)
		}
		if ctx.Err() != nil {
			return err // the agent has cut the request short
		}
	}
	r.counts.failedConditions.Add(1)
	r.synced.Store(false)
	if r.isAnother(ctx, self, p, err) {
		r.ends()
		return nil
	}
	return err
}

// statusPatch returns the patch that writes conditions to the pod with that UID, and to no
// other of its name.
func statusPatch(uid string, write []kubernetes.PodCondition) any {
	return map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status":   map[string]any{"conditions": write},
	}
}

// isAnother reports whether an error of a patch means that the pod is no more.
func (r *run) isAnother(ctx context.Context, self kubernetes.Self, p *kubernetes.Pod, err error) bool {
	e, ok := errors.AsType[*kubernetes.Error](err)
	switch {
	case !ok:
		return false
	case e.Trouble == kubernetes.TroubleMissing:
		return true
	case e.Trouble != kubernetes.TroubleConflict && e.Trouble != kubernetes.TroubleInvalid:
		return false
	}
	var now kubernetes.Pod
	err = r.o.Pod.Client().Get(ctx, self, &now)
	e, ok = errors.AsType[*kubernetes.Error](err)
	return err == nil && now.Metadata.UID != "" && now.Metadata.UID != p.Metadata.UID ||
		ok && e.Trouble == kubernetes.TroubleMissing
}

// doubt records a write that may have been done.
func (r *run) doubt(p *kubernetes.Pod, write []kubernetes.PodCondition, is view) {
	for _, c := range write {
		was, _ := is(c.Type)
		r.remember(c.Type, said{PodCondition: was, shown: p, lost: true})
	}
}

func (r *run) remember(kind string, s said) {
	if r.memory.said == nil {
		r.memory.said = map[string]said{}
	}
	r.memory.said[kind] = s
}

// wrote records a write, and logs the conditions whose status has changed.
func (r *run) wrote(p *kubernetes.Pod, write []kubernetes.PodCondition, after *kubernetes.Pod) {
	was, is := conditions(p), conditions(after)
	for _, c := range write {
		before := was[c.Type]
		if said, spoken := r.memory.said[c.Type]; spoken {
			before = said.PodCondition
		}
		answer, there := is[c.Type]
		if !there {
			answer = c
		}
		r.remember(c.Type, said{PodCondition: answer, shown: p})
		if before.Status != c.Status {
			r.log.Info("pod condition changed", "type", c.Type, "status", c.Status, "reason", c.Reason, "message", c.Message)
		}
	}
	r.well()
}

// well records that a write has succeeded.
func (r *run) well() {
	r.failures, r.retry = 0, time.Time{}
	r.synced.Store(!r.lacking)
	if r.told != 0 {
		r.told = 0
		r.log.Info("the pod has its conditions again")
	}
}

// ends records that the pod is no more: another of its name has an agent of its own.
func (r *run) ends() {
	r.over = true
	r.synced.Store(true)
	r.log.Info("the pod is gone: its conditions are not written any more")
}

// fail plans the next try after an error, and logs each kind of error once.
func (r *run) fail(err error) {
	r.failures++
	var after time.Duration
	if e, ok := errors.AsType[*kubernetes.Error](err); ok {
		after = e.After
		if r.told&e.Trouble == 0 {
			r.log.Warn("cannot write the conditions of the pod", "err", err)
		}
		r.told |= e.Trouble
	}
	r.retry = time.Now().Add(backOff(r.failures, after))
	r.lookBy(r.retry)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// podFollower is one Run of the source: it looks at the pod, watches it from there,
// takes the watch up again where it ended, and looks anew where it cannot.
type podFollower struct {
	source  *Source
	api     podAPI
	changed func(target string)

	version  string     // of the pod: the watch goes on from here; empty: look first
	failures int        // in a row; they make the waits longer
	cuts     int        // watches in a row that were cut off before they had lasted
	told     podTrouble // what has been logged since the pod was seen
}

func (f *podFollower) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.turn(ctx)
		if _, gone := f.source.known(); gone {
			f.source.setUp(true, "") // nothing more will come, and nothing is missed
			<-ctx.Done()
			return
		}
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(f.rest(err))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// turn looks if it has to, and watches as long as it can. No error: the watch came to
// its ordinary end.
func (f *podFollower) turn(ctx context.Context) error {
	self, err := f.api.env.self()
	if err != nil {
		return err
	}
	if f.version == "" {
		if err := f.look(ctx, self); err != nil {
			return err
		}
		if _, gone := f.source.known(); gone {
			return nil
		}
	}
	end := f.api.env.watch + rand.N(f.api.env.watch)
	watch, cancel := context.WithTimeout(ctx, end+f.api.env.grace)
	defer cancel()
	stream, err := f.api.watch(watch, self, f.version, end)
	if err != nil {
		if e, ok := errors.AsType[*podError](err); ok && e.trouble != troubleConnection {
			f.version = "" // whatever the answer is about, a look asks for less
		}
		return err
	}
	defer stream.close()
	began := time.Now()
	if f.cuts < 2 {
		f.well(self)
	}
	err = f.follow(self, stream, began)
	cut := false
	if e, ok := errors.AsType[*podError](err); ok {
		cut = e.trouble == troubleCut
	}
	switch lasted := f.lasted(began); {
	case lasted && cut:
		f.failures, f.cuts = 0, 0
		return nil
	case lasted:
		f.failures, f.cuts = 0, 0
	case cut:
		if f.cuts++; f.cuts >= 2 {
			f.version = "" // looks at least keep the view fresh
		}
	}
	return err
}

func (f *podFollower) lasted(began time.Time) bool { return time.Since(began) >= f.api.env.lasting }

// look asks for the pod as it is. If it has been seen before and now there is none, or
// another of its name, it is gone.
func (f *podFollower) look(ctx context.Context, self podSelf) error {
	uid, _ := f.source.known()
	p, err := f.api.get(ctx, self)
	if err != nil {
		if e, ok := errors.AsType[*podError](err); ok && e.trouble == troubleMissing && uid != "" {
			f.gone()
			return nil
		}
		return err
	}
	if uid != "" && p.Metadata.UID != uid {
		f.gone()
		return nil
	}
	if self.uid != "" && p.Metadata.UID != self.uid {
		return podErrorf(troubleMissing, "get %s: its UID is %s, and the agent's own pod has %s", self, p.Metadata.UID, self.uid)
	}
	f.version = p.Metadata.ResourceVersion
	f.source.see(p, f.changed)
	return nil
}

// gone says that the pod has been deleted: nothing comes after it, since a pod of its
// name that is made now has an agent of its own.
func (f *podFollower) gone() {
	f.source.mu.Lock()
	last := *f.source.pod
	f.source.mu.Unlock()
	last.gone = true
	f.source.log.Info("pod has been deleted")
	f.source.see(&last, f.changed)
}

// follow takes over what the events say until there are no more, and says why.
func (f *podFollower) follow(self podSelf, stream *podStream, began time.Time) error {
	for {
		var e podEvent
		if err := stream.decode(&e); err != nil {
			if stream.cut(err) {
				return podErrorf(troubleCut, "watch %s: the watch was cut off again and again: %w", self, err)
			}
			f.version = "" // else the same would come again
			return podErrorf(troubleAnswer, "watch %s: %w", self, err)
		}
		if err := f.take(self, e); err != nil {
			f.version = ""
			return err
		}
		if _, gone := f.source.known(); gone {
			return nil
		}
		if f.cuts < 2 || f.lasted(began) {
			f.well(self)
		}
	}
}

// take takes over one event.
func (f *podFollower) take(self podSelf, e podEvent) error {
	if e.Type == "ERROR" {
		var s podStatus
		if err := e.object(&s); err != nil {
			return podErrorf(troubleAnswer, "watch %s: %w", self, err)
		}
		trouble := troubleAnswer
		if s.Code == 410 {
			trouble = troubleExpired
		}
		return podErrorf(trouble, "watch %s: the API server ends it with %d: %s", self, s.Code, self.quote(s.Message))
	}
	p := new(pod)
	if err := e.object(p); err != nil {
		return podErrorf(troubleAnswer, "watch %s: %w", self, err)
	}
	if p.Metadata.ResourceVersion == "" {
		return podErrorf(troubleAnswer, "watch %s: an event %q without a version", self, e.Type)
	}
	f.version = p.Metadata.ResourceVersion
	if uid, _ := f.source.known(); p.Metadata.UID != uid {
		return nil // a bookmark, or a pod of the same name that is not ours
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		f.source.see(p, f.changed)
	case "DELETED":
		f.gone()
	}
	return nil
}

// well says that the pod is being watched.
func (f *podFollower) well(self podSelf) {
	if f.source.setUp(true, "") {
		f.told = 0
		f.source.log.Info("pod is watched", "namespace", self.namespace, "pod", self.name)
	}
}

// rest takes note of how a turn ended, and returns how long to wait before the next.
func (f *podFollower) rest(err error) time.Duration {
	e, ok := errors.AsType[*podError](err)
	if !ok {
		return f.backOff(0)
	}
	f.failures++
	switch {
	case e.trouble == troubleExpired && f.failures == 1:
		return 0 // it happens to every watch some day
	case e.trouble == troubleCut && f.cuts < 2: // so does this
	default:
		f.source.setUp(false, e.Error())
		if f.told&e.trouble == 0 {
			f.source.log.Warn("pod is not watched", "err", e)
		}
		f.told |= e.trouble
	}
	return max(f.backOff(f.failures-1), e.after)
}

// backOff returns the wait after so many failures: each doubles it up to a bound, and
// up to half of it is left to chance, so that the agents of a cluster do not return to
// a restarted API server as one.
func (f *podFollower) backOff(failures int) time.Duration {
	d := min(f.api.env.retryMin<<min(failures, 20), f.api.env.retryMax)
	return d/2 + rand.N(d/2+1)
}

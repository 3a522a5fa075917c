// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// following is one run of a Follower: it reads the pod, watches it from that version, resumes
// the watch where it ended, and reads the pod again if it cannot.
type following struct {
	*Follower

	version  string  // of the pod, from which the watch goes on; empty: look first
	failures int     // in a row; each makes the wait longer
	cuts     int     // watches in a row that were cut off before they had lasted
	told     Trouble // what has been logged since the pod was last seen
}

func (f *following) run(ctx context.Context) {
	for {
		if _, gone := f.known(); gone {
			f.setUp(true, "") // no event will come any more, so none is missed
			<-ctx.Done()
			return
		}
		err := f.session(ctx)
		if _, gone := f.known(); gone {
			continue
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

// session looks if it has to, and watches as long as it can. It returns nil at the ordinary
// end of a watch.
func (f *following) session(ctx context.Context) error {
	self, err := f.client.Self()
	if err != nil {
		return err
	}
	if f.version == "" {
		if err := f.look(ctx, self); err != nil {
			return err
		}
		if _, gone := f.known(); gone {
			return nil
		}
	}
	end := f.pace.Watch + rand.N(f.pace.Watch)
	watch, cancel := context.WithTimeout(ctx, end+f.pace.Grace)
	defer cancel()
	stream, err := f.client.Watch(watch, self, f.version, end)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Trouble != TroubleConnection {
			f.version = "" // a look needs less than a watch, whatever the answer is about
		}
		return err
	}
	defer stream.Close()
	began := time.Now()
	if f.cuts < 2 {
		f.well(self)
	}
	err = f.follow(self, stream, began)
	cut := false
	if e, ok := errors.AsType[*Error](err); ok {
		cut = e.Trouble == TroubleCut
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

func (f *following) lasted(began time.Time) bool { return time.Since(began) >= f.pace.Lasting }

// look asks for the current pod. A pod that was seen before is gone if there is no pod of its
// name now, or another one.
func (f *following) look(ctx context.Context, self Self) error {
	uid, _ := f.known()
	p := new(Pod)
	if err := f.client.Get(ctx, self, p); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Trouble == TroubleMissing && uid != "" {
			f.gone()
			return nil
		}
		return err
	}
	if p.Metadata.UID == "" || p.Metadata.ResourceVersion == "" {
		return Errorf(TroubleAnswer, "read %s: the answer is not a pod", self)
	}
	if uid != "" && p.Metadata.UID != uid {
		f.gone()
		return nil
	}
	if self.UID != "" && p.Metadata.UID != self.UID {
		return Errorf(TroubleMissing, "get %s: its UID is %s, but that of the agent's own pod is %s", self, p.Metadata.UID, self.UID)
	}
	f.version = p.Metadata.ResourceVersion
	f.see(p)
	return nil
}

// gone records that the pod has been deleted. That is final: a new pod of the same name has
// an agent of its own.
func (f *following) gone() {
	last := *f.Pod()
	last.Gone = true
	f.log.Info("pod has been deleted")
	f.see(&last)
}

// follow applies events until there are no more, and returns why.
func (f *following) follow(self Self, stream *Stream, began time.Time) error {
	for {
		e, err := stream.Next()
		if err == nil {
			err = f.apply(self, e)
		}
		if err != nil {
			if broken, ok := errors.AsType[*Error](err); !ok || broken.Trouble != TroubleCut {
				f.version = "" // else the same event would come again
			}
			return err
		}
		if _, gone := f.known(); gone {
			return nil
		}
		if f.cuts < 2 || f.lasted(began) {
			f.well(self)
		}
	}
}

// apply applies one event.
func (f *following) apply(self Self, e *Event) error {
	p := new(Pod)
	if err := e.Decode(p); err != nil {
		return Errorf(TroubleAnswer, "watch %s: %w", self, err)
	}
	if p.Metadata.ResourceVersion == "" {
		return Errorf(TroubleAnswer, "watch %s: an event %q without a version", self, e.Type)
	}
	f.version = p.Metadata.ResourceVersion
	if uid, _ := f.known(); p.Metadata.UID != uid {
		return nil // a bookmark, or another pod of the same name
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		f.see(p)
	case "DELETED":
		f.gone()
	}
	return nil
}

// well records that the pod is being watched.
func (f *following) well(self Self) {
	if f.setUp(true, "") {
		f.told = 0
		f.log.Info("watching the pod", "namespace", self.Namespace, "pod", self.Name)
	}
}

// rest records how a session ended, and returns how long to wait before the next.
func (f *following) rest(err error) time.Duration {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return BackOff(0, f.pace.RetryMin, f.pace.RetryMax)
	}
	f.failures++
	switch {
	case e.Trouble == TroubleExpired && f.failures == 1:
		return 0 // it happens to every watch some day
	case e.Trouble == TroubleCut && f.cuts < 2: // so does this
	default:
		f.setUp(false, e.Error())
		if f.told&e.Trouble == 0 {
			f.log.Warn("cannot watch the pod", "err", e)
		}
		f.told |= e.Trouble
	}
	return max(BackOff(f.failures-1, f.pace.RetryMin, f.pace.RetryMax), e.After)
}

// BackOff returns the wait after that many failures: first, doubled by each failure, at most
// longest. Up to half of the wait is random, so that the agents of a cluster do not all return to
// a restarted API server at once.
func BackOff(failures int, first, longest time.Duration) time.Duration {
	d := min(first<<min(failures, 20), longest)
	return d/2 + rand.N(d/2+1)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// follower is one Run of the source: it reads the pod, watches it from that version, resumes
// the watch where it ended, and reads the pod again if it cannot.
type follower struct {
	source  *Source
	client  *kubernetes.Client
	changed func(target string)

	version  string             // of the pod, from which the watch goes on; empty: look first
	failures int                // in a row; each makes the wait longer
	cuts     int                // watches in a row that were cut off before they had lasted
	told     kubernetes.Trouble // what has been logged since the pod was last seen
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.session(ctx)
		if _, gone := f.source.known(); gone {
			f.source.setUp(true, "") // no event will come any more, so none is missed
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

// session looks if it has to, and watches as long as it can. It returns nil at the ordinary
// end of a watch.
func (f *follower) session(ctx context.Context) error {
	self, err := f.client.Self()
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
	end := f.source.watch + rand.N(f.source.watch)
	watch, cancel := context.WithTimeout(ctx, end+f.source.grace)
	defer cancel()
	stream, err := f.client.Watch(watch, self, f.version, end)
	if err != nil {
		if e, ok := errors.AsType[*kubernetes.Error](err); ok && e.Trouble != kubernetes.TroubleConnection {
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
	if e, ok := errors.AsType[*kubernetes.Error](err); ok {
		cut = e.Trouble == kubernetes.TroubleCut
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

func (f *follower) lasted(began time.Time) bool { return time.Since(began) >= f.source.lasting }

// look asks for the current pod. A pod that was seen before is gone if there is no pod of its
// name now, or another one.
func (f *follower) look(ctx context.Context, self kubernetes.Self) error {
	uid, _ := f.source.known()
	p := new(pod)
	if err := f.client.Get(ctx, self, p); err != nil {
		if e, ok := errors.AsType[*kubernetes.Error](err); ok && e.Trouble == kubernetes.TroubleMissing && uid != "" {
			f.gone()
			return nil
		}
		return err
	}
	if p.Metadata.UID == "" || p.Metadata.ResourceVersion == "" {
		return kubernetes.Errorf(kubernetes.TroubleAnswer, "read %s: the answer is not a pod", self)
	}
	if uid != "" && p.Metadata.UID != uid {
		f.gone()
		return nil
	}
	if self.UID != "" && p.Metadata.UID != self.UID {
		return kubernetes.Errorf(kubernetes.TroubleMissing, "get %s: its UID is %s, but that of the agent's own pod is %s", self, p.Metadata.UID, self.UID)
	}
	f.version = p.Metadata.ResourceVersion
	f.source.see(p, f.changed)
	return nil
}

// gone records that the pod has been deleted. That is final: a new pod of the same name has
// an agent of its own.
func (f *follower) gone() {
	f.source.mu.Lock()
	last := *f.source.pod
	f.source.mu.Unlock()
	last.gone = true
	f.source.log.Info("pod has been deleted")
	f.source.see(&last, f.changed)
}

// follow applies events until there are no more, and returns why.
func (f *follower) follow(self kubernetes.Self, stream *kubernetes.Stream, began time.Time) error {
	for {
		e, err := stream.Next()
		if err == nil {
			err = f.apply(self, e)
		}
		if err != nil {
			if broken, ok := errors.AsType[*kubernetes.Error](err); !ok || broken.Trouble != kubernetes.TroubleCut {
				f.version = "" // else the same event would come again
			}
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

// apply applies one event.
func (f *follower) apply(self kubernetes.Self, e *kubernetes.Event) error {
	p := new(pod)
	if err := e.Decode(p); err != nil {
		return kubernetes.Errorf(kubernetes.TroubleAnswer, "watch %s: %w", self, err)
	}
	if p.Metadata.ResourceVersion == "" {
		return kubernetes.Errorf(kubernetes.TroubleAnswer, "watch %s: an event %q without a version", self, e.Type)
	}
	f.version = p.Metadata.ResourceVersion
	if uid, _ := f.source.known(); p.Metadata.UID != uid {
		return nil // a bookmark, or another pod of the same name
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		f.source.see(p, f.changed)
	case "DELETED":
		f.gone()
	}
	return nil
}

// well records that the pod is being watched.
func (f *follower) well(self kubernetes.Self) {
	if f.source.setUp(true, "") {
		f.told = 0
		f.source.log.Info("watching the pod", "namespace", self.Namespace, "pod", self.Name)
	}
}

// rest records how a session ended, and returns how long to wait before the next.
func (f *follower) rest(err error) time.Duration {
	e, ok := errors.AsType[*kubernetes.Error](err)
	if !ok {
		return f.backOff(0)
	}
	f.failures++
	switch {
	case e.Trouble == kubernetes.TroubleExpired && f.failures == 1:
		return 0 // it happens to every watch some day
	case e.Trouble == kubernetes.TroubleCut && f.cuts < 2: // so does this
	default:
		f.source.setUp(false, e.Error())
		if f.told&e.Trouble == 0 {
			f.source.log.Warn("cannot watch the pod", "err", e)
		}
		f.told |= e.Trouble
	}
	return max(f.backOff(f.failures-1), e.After)
}

// backOff returns the wait after that many failures: each doubles the wait up to a bound, and
// up to half of the wait is random, so that the agents of a cluster do not all return to a
// restarted API server at once.
func (f *follower) backOff(failures int) time.Duration {
	d := min(f.source.retryMin<<min(failures, 20), f.source.retryMax)
	return d/2 + rand.N(d/2+1)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Follower keeps a view of the agent's own pod for any number of readers: one client and one
// watch serve all of them. While nobody calls Follow, a Follower does nothing and has no
// goroutine. A Follower never gives up: somebody may correct the environment, the token or the Role
// meanwhile.
type Follower struct {
	log    *slog.Logger
	client *Client
	pace   Pace

	mu      sync.Mutex
	pod     *Pod // as last seen, never modified; nil if not seen yet
	up      bool
	trouble string    // why the pod is not watched; empty if it is, or before the first try
	readers []*func() // who follows
	cancel  context.CancelFunc
	done    chan struct{} // closed when the last run has ended; nil if there was none
}

// Pace holds the timeouts and waits of a Follower.
type Pace struct {
	Request  time.Duration // the most that an answer may take
	Watch    time.Duration // the timeout that a watch asks for, up to twice this
	Grace    time.Duration // how long after that timeout a watch counts as dead
	Lasting  time.Duration // a watch that was cut off after this long counts as good
	RetryMin time.Duration
	RetryMax time.Duration
}

// DefaultPace returns the Pace for use in a pod.
func DefaultPace() Pace {
	return Pace{
		Request:  10 * time.Second,
		Watch:    5 * time.Minute,
		Grace:    30 * time.Second,
		Lasting:  10 * time.Second,
		RetryMin: 200 * time.Millisecond,
		RetryMax: 30 * time.Second,
	}
}

// NewFollower returns a Follower that knows nothing yet.
func NewFollower(env Env, pace Pace, log *slog.Logger) *Follower {
	return &Follower{log: log.With("source", "kubernetes"), client: New(env, pace.Request), pace: pace}
}

// Client returns the client of the Follower, for other requests about the pod.
func (f *Follower) Client() *Client { return f.client }

// Pod returns the pod as last seen, nil before that. The view stays while the pod cannot be
// watched.
func (f *Follower) Pod() *Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pod
}

// Up reports whether the pod is being watched, or the watch is being renewed in the ordinary
// course of things.
func (f *Follower) Up() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.up
}

// Trouble says why the pod is not watched; it is empty if the pod is, and before the first
// try.
func (f *Follower) Trouble() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trouble
}

// Follow keeps the view up to date until ctx is done. It calls changed at first and after each
// change of Pod, with no lock held. The last to follow waits for the end of the watch; changed
// may be called once more while Follow returns.
func (f *Follower) Follow(ctx context.Context, changed func()) {
	f.join(&changed)
	defer f.leave(&changed)
	changed()
	<-ctx.Done()
}

func (f *Follower) join(changed *func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers = append(f.readers, changed); len(f.readers) > 1 {
		return
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(context.Background())
	before, done := f.done, make(chan struct{})
	f.done = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		(&following{Follower: f}).run(ctx)
		f.setUp(false, "")
		f.client.Close()
	}()
}

func (f *Follower) leave(changed *func()) {
	f.mu.Lock()
	f.readers = slices.DeleteFunc(slices.Clone(f.readers), func(r *func()) bool { return r == changed })
	last, done := len(f.readers) == 0, f.done
	if last {
		f.cancel()
	}
	f.mu.Unlock()
	if last {
		<-done
	}
}

// see stores a pod, and tells the readers.
func (f *Follower) see(p *Pod) {
	f.mu.Lock()
	f.pod = p
	readers := f.readers
	f.mu.Unlock()
	for _, changed := range readers {
		(*changed)()
	}
}

// known returns the UID of the pod last seen, and whether it is gone.
func (f *Follower) known() (uid string, gone bool) {
	p := f.Pod()
	if p == nil {
		return "", false
	}
	return p.Metadata.UID, p.Gone
}

// setUp sets what Up returns, and reports whether that is a change. trouble says why the pod
// is not watched.
func (f *Follower) setUp(up bool, trouble string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.up
	f.up, f.trouble = up, trouble
	return was != up
}

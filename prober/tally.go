// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import "sync"

// flags is what is derived of a target.
type flags struct {
	started, ready, live bool
}

// tally counts targets by their flags, kept up to date at each change, so that the
// aggregates cost the same however many targets there are. Its lock is the
// innermost one.
type tally struct {
	mu  sync.Mutex
	sum Summary
}

func (t *tally) read() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum
}

// move takes a target from one set of flags to another.
func (t *tally) move(from, to flags) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(from, -1)
	t.add(to, 1)
}

// replace takes all of one list of targets out and another one in, so that nobody
// sees a moment in between. None of them may change meanwhile.
func (t *tally) replace(out, in []*target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range out {
		t.add(o.flags, -1)
	}
	for _, i := range in {
		t.add(i.flags, 1)
	}
	t.sum.Targets += len(in) - len(out)
	t.sum.Loaded = true
}

func (t *tally) stopping() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Stopping = true
}

// terminating takes note, and reports whether that is news.
func (t *tally) terminating() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.sum.Terminating
	t.sum.Terminating = true
	return !was
}

// add is called with mu held.
func (t *tally) add(f flags, n int) {
	if f.started {
		t.sum.Started += n
	}
	if f.ready {
		t.sum.Ready += n
	}
	if f.live {
		t.sum.Live += n
	}
}

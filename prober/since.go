// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// since is when the flags of a target changed last, in Unix nanoseconds.
type since struct{ started, ready, live int64 }

// sinceAll is since when the agent watches a target that it has not known before.
func sinceAll(now time.Time) since {
	at := now.UnixNano()
	return since{at, at, at}
}

// changed returns the same as times.
func (s since) changed() Changed {
	return Changed{time.Unix(0, s.started), time.Unix(0, s.ready), time.Unix(0, s.live)}
}

// date takes note of when flags, which are to be these, and results change. With mu held.
func (t *target) date(inst gate.Instance, is flags, now time.Time) {
	at := now.UnixNano()
	if is.started != t.flags.started {
		t.since.started = at
	}
	if is.ready != t.flags.ready {
		t.since.ready = at
	}
	if is.live != t.flags.live {
		t.since.live = at
	}
	for _, w := range t.workers {
		if r := t.state.Result(w.kind, inst); r != w.result || w.changed == 0 {
			w.result, w.changed = r, at
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"sync"
	"time"
)

// absence is how late a turn must be for the agent to count as absent meanwhile.
const absence = 500 * time.Millisecond

// pardon is how long no posted beat is missing after an absence: those that were sent meanwhile
// have yet to be received. An agent that is late at every turn gets a pardon each pardonEvery.
const pardon, pardonEvery = time.Second, time.Minute

// longest bounds the age of a file, which may have any time.
const longest = 100 * 365 * 24 * time.Hour

// Pulse is what the agent knows of the beats from one place: a file, or a path of its own. All
// probes of a target with that place share the Pulse, and reloads keep it.
type Pulse struct {
	mu sync.Mutex

	// since is when the agent began to watch: to listen for beats, or first looked at the file.
	since time.Time
	last  beat
	has   bool // there is a last beat

	looked time.Time // just before the last look at the file
	mtime  time.Time // as of the last beat

	absent   time.Duration // how long the agent did not run since the last beat
	counted  time.Time     // absences are counted up to here
	resumed  time.Time     // when the life last ran again after a pause
	before   time.Duration // of absent, what was before that
	pardoned time.Time     // when the last pardon began
}

// beat is a sign of life.
type beat struct {
	// at is when the beat came, by the monotonic clock; after is a moment before that. Both are
	// equal for a posted beat.
	at, after time.Time
	// wall is when the beat came by the clock on the wall.
	wall time.Time
	// seen says that the agent has seen the beat come. If not, at is what the wall clock said when
	// the agent first looked at the file.
	seen bool
}

// NewPulse returns a pulse that the agent watches from now on.
func NewPulse() *Pulse { return &Pulse{since: time.Now()} }

// Beat records a posted beat.
func (p *Pulse) Beat() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.has, p.absent, p.before = beat{at: now, after: now, wall: now, seen: true}, true, 0, 0
}

// Last returns when the last beat came; the zero time if the agent knows of none.
func (p *Pulse) Last() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.wall
}

// see records what a look at the file has found by now. A beat is any change of the modification
// time: an earlier one means that the wall clock was put back. A beat from the future came when
// it was first seen. The caller holds mu.
func (p *Pulse) see(found sight, now time.Time) {
	before := p.looked
	first := before.IsZero()
	if found.began.Before(before) {
		return // another probe has looked later
	}
	p.looked = found.began
	if first {
		p.since = now
	}
	if found.missing || p.has && found.mtime.Equal(p.mtime) {
		return
	}
	age := min(max(now.Round(0).Sub(found.mtime), 0), longest)
	p.mtime, p.has, p.absent, p.before = found.mtime, true, 0, 0
	if first {
		p.last = beat{at: now.Add(-age), wall: now.Add(-age).Round(0)}
		return
	}
	// Whatever the wall clock says, the beat came between the two looks.
	at := now.Add(-min(age, now.Sub(before)))
	p.last = beat{at: at, after: before, wall: now.Add(-age).Round(0), seen: true}
}

// countAbsence counts the time from when the attempt could begin to now, unless that is short: the
// agent, or its whole machine, did not run. The caller holds mu.
func (p *Pulse) countAbsence(life Life, now time.Time) {
	due := life.Due
	if !life.Resumed.Equal(p.resumed) {
		p.resumed, p.before = life.Resumed, p.absent
	}
	if due.IsZero() || now.Sub(due) <= absence {
		return
	}
	for _, counted := range [...]time.Time{p.counted, p.last.at} {
		if counted.After(due) {
			due = counted
		}
	}
	p.absent += max(now.Sub(due), 0)
	p.counted = now
	if now.Sub(p.pardoned) > pardonEvery {
		p.pardoned = now
	}
}

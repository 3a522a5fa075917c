// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"fmt"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

const (
	// unseenGrace is how much longer than its initial delay a liveness probe waits if the source
	// has never seen a socket: the target may have begun later than the agent, after an init
	// container or an image pull. With the 30 s for which the kubelet asks before it kills, a
	// first boot that hangs is killed at most 60 s late.
	unseenGrace = 20 * time.Second
	// handOverGap is how long a target may not listen before its instance has ended although no
	// attempt has failed: some servers close their listener and open another.
	handOverGap = 2 * time.Second
)

// listening infers the instances of one target from its listening sockets. It has the rules
// alone: no clock, and no I/O.
//
// The target is fresh (no socket of this instance was ever seen), or listens, or its sockets
// are lost (nobody knows yet whether it has ended), or it has ended.
type listening struct {
	listeners []config.Listener
	maxHold   time.Duration
	refresh   time.Duration

	instance gate.Instance
	// sockets are the ids of the last set that was not empty, sorted.
	sockets []uint64
	holder  holder    // the processes that held the sockets
	seen    bool      // sockets of the target were seen
	fresh   bool      // no sockets of this instance were seen
	closed  bool      // a process that held the sockets runs on without them
	asked   bool      // the kubelet has asked about the target
	held    bool      // a probe of the target is held
	lostAt  time.Time // when the sockets were first missing; zero if they are there
	endedAt time.Time
	// missedAt is when an attempt last failed since the sockets were last seen; zero if none has.
	missedAt time.Time
}

// newListening returns a new target with the current sockets, which belong to an instance of
// unknown age.
func newListening(c *config.Instance, there *places, now time.Time) *listening {
	l := &listening{listeners: c.Listeners, maxHold: c.MaxHold, refresh: c.Refresh}
	if sockets, _ := l.of(there); len(sockets) > 0 {
		l.sockets, l.seen = sockets, true
		l.instance = gate.Instance{ID: socketID(sockets), Phase: gate.Running, MaxHold: l.maxHold}
	} else {
		l.fresh = true
		l.instance = unseenSince(now)
	}
	return l
}

// unseenSince returns the instance of a target whose sockets were never seen.
func unseenSince(start time.Time) gate.Instance {
	return gate.Instance{ID: timeID(start), Phase: gate.Running, StartedAt: start, LivenessLag: unseenGrace, MaxHold: gate.Never}
}

// configure changes the configuration. The instance stays: sockets on other ports, or read in
// another way, do not show a restart.
func (l *listening) configure(c *config.Instance, there *places) {
	same := slices.Equal(l.listeners, c.Listeners)
	l.listeners, l.maxHold, l.refresh = c.Listeners, c.MaxHold, c.Refresh
	if sockets, _ := l.of(there); !same {
		l.rebase(sockets)
	}
	if l.instance.MaxHold != gate.Never {
		l.instance.MaxHold = l.maxHold
	}
}

// rebase takes these sockets for those that the instance has always had.
func (l *listening) rebase(sockets []uint64) {
	if l.instance.Phase != gate.Running {
		return
	}
	l.found(sockets)
	l.holder, l.missedAt = holder{}, time.Time{}
	l.seen = len(sockets) > 0
	l.instance.MaxHold = gate.Never
	if l.seen {
		l.fresh = false
		l.instance.MaxHold = l.maxHold
	}
}

// infer updates the instance from the sockets of a read that began at now, and from the fate of
// the holder of the last ones. An attempt that has failed since then is newer than the sockets.
func (l *listening) infer(sockets []uint64, fate fate, now time.Time) {
	if len(sockets) == 0 {
		l.lose(fate, now)
		return
	}
	switch {
	case l.instance.Phase != gate.Running:
		l.instance = gate.Instance{ID: l.name(sockets, now), Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
	case l.fresh:
		l.listens(sockets, now)
	case !l.seen:
		l.instance.MaxHold = l.maxHold // the instance was there without its sockets
	case fate == reopened || shared(l.sockets, sockets):
	default:
		l.replace(sockets, fate, now)
	}
	l.found(sockets)
	l.seen, l.fresh = true, false
	if !l.missedAt.After(now) {
		l.missedAt = time.Time{}
	}
}

// found records the current sockets.
func (l *listening) found(sockets []uint64) {
	if !slices.Equal(l.sockets, sockets) {
		l.sockets, l.holder = sockets, holder{}
	}
	l.closed, l.lostAt = false, time.Time{}
}

// listens ends a boot: the first socket of the instance is there. The process may have begun
// much later than the source could see, so earlier failures no longer stand, and the delay of
// a liveness probe begins.
func (l *listening) listens(sockets []uint64, now time.Time) {
	is := gate.Instance{
		ID: l.name(sockets, now), Phase: gate.Running,
		StartedAt: l.instance.StartedAt, From: l.instance.ID, MaxHold: l.maxHold,
	}
	if l.held {
		is.StartedAt = now // the boot was given up: this is most likely another process
	}
	is.LivenessLag = now.Sub(is.StartedAt)
	l.instance = is
}

// replace begins the next instance, which shares no socket with the last one. If no attempt
// has failed in between, the last instance has handed over to the next.
func (l *listening) replace(sockets []uint64, fate fate, now time.Time) {
	is := gate.Instance{ID: l.name(sockets, now), Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
	if !l.held && !l.missed() {
		is.From, is.Restarted = l.instance.ID, fate == gone
	}
	l.instance = is
}

// lose updates the instance without any sockets. The instance has ended if its process is
// gone, an attempt has failed, or too much time has passed.
func (l *listening) lose(fate fate, now time.Time) {
	if l.fresh || !l.seen || l.instance.Phase != gate.Running {
		return
	}
	if l.closed = fate == runs; l.closed {
		l.lostAt = time.Time{}
		return
	}
	if l.lostAt.IsZero() {
		l.lostAt = now
	}
	if l.held || l.missed() || fate == gone || now.Sub(l.lostAt) >= handOverGap {
		l.instance.Phase, l.endedAt, l.lostAt = gate.Terminated, now, time.Time{}
	}
}

// missed reports whether an attempt has failed since the sockets were last seen.
func (l *listening) missed() bool { return !l.missedAt.IsZero() }

// end ends the instance of a target whose sockets were never seen.
func (l *listening) end(now time.Time) {
	if l.seen {
		return
	}
	l.seen, l.fresh, l.endedAt = true, false, now
	l.instance.Phase, l.instance.MaxHold = gate.Terminated, l.maxHold
}

// overdue reports whether a target ended so long ago that a sign of life is enough for the
// next instance to run, although it does not listen.
func (l *listening) overdue(now time.Time) bool {
	return l.instance.Phase != gate.Running && now.Sub(l.endedAt) >= l.maxHold
}

// ask updates the instance of a target that does not listen when the kubelet asks about it:
// its container has run since the given time at the latest. ask reports whether the instance
// has changed.
func (l *listening) ask(since, now time.Time) bool {
	first := !l.asked
	l.asked = true
	switch {
	case l.overdue(now):
		l.beginUnseen(now)
	case first && l.fresh && !l.seen && since.After(l.instance.StartedAt.Add(time.Second)):
		// The agent is older than the container: no earlier result is about this container.
		was := l.instance.ID
		l.instance = unseenSince(since)
		l.instance.From = was
	default:
		return false
	}
	return true
}

// beginUnseen begins the next instance, which does not listen yet.
func (l *listening) beginUnseen(now time.Time) {
	l.fresh = true
	l.instance = gate.Instance{ID: timeID(now), Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
}

// settled reports whether a read with the same sockets would change nothing.
func (l *listening) settled() bool {
	return l.instance.Phase == gate.Running && !l.missed() && !l.closed && l.lostAt.IsZero()
}

// wait returns the time from one read to the next, which is short if a change is expected.
func (l *listening) wait(now time.Time) time.Duration {
	if l.held || !l.settled() && !l.overdue(now) {
		return min(l.refresh, urgentRefresh)
	}
	return l.refresh
}

// shared reports whether two sorted sets have an element in common.
func shared(a, b []uint64) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// name returns the ID of an instance with these sockets. A cookie never recurs, but an inode
// may.
func (l *listening) name(sockets []uint64, now time.Time) string {
	if id := socketID(sockets); id != l.instance.ID {
		return id
	}
	return timeID(now)
}

// socketID returns an ID from the oldest socket, so that a restarted agent uses the same ID.
func socketID(sockets []uint64) string { return fmt.Sprintf("socket-%x", sockets[0]) }

// timeID returns the ID of an instance without a socket, from the time at which it began.
func timeID(t time.Time) string { return "since-" + t.UTC().Format("20060102T150405.000Z") }

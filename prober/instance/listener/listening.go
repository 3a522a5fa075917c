// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// unseenGrace is how much longer than its initial delay a liveness probe waits where
	// no socket was ever seen: the target may have begun later than the agent, after an
	// init container or the pull of an image. With the 30 s for which a kubelet asks
	// before it kills, a first boot that hangs is killed 60 s late at most.
	unseenGrace = 20 * time.Second
	// handOverGap is how long nobody may listen before the instance has ended although no
	// attempt has failed: some servers close their listener and open another.
	handOverGap = 2 * time.Second
)

// listening infers the instances of one target from its listening sockets. It is
// the rules alone: it has no clock and reads nothing.
//
// The target is fresh (no socket of this instance was ever seen), it listens, its
// sockets are lost (nobody knows yet whether it has ended), or it has ended.
type listening struct {
	listeners []config.Listener
	maxHold   time.Duration
	refresh   time.Duration

	instance gate.Instance
	// sockets are the ids of the last set that was not empty, sorted.
	sockets []uint64
	holder  holder    // who held them
	seen    bool      // sockets of the target were seen
	fresh   bool      // none were seen of this instance
	closed  bool      // a process that held them runs on without
	asked   bool      // a kubelet has asked about the target
	missed  bool      // an attempt has failed since they were seen last
	lostAt  time.Time // when they were first not seen; zero: they are there
	endedAt time.Time
	held    bool // a probe of the target waits for a new instance
}

// newListening returns a target that is first looked at now, with the sockets there are.
// They belong to an instance older than anyone remembers.
func newListening(c *config.Instance, there map[uint16][]proc.Socket, now time.Time) *listening {
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

// unseenSince is the instance of a target of which no socket was ever seen.
func unseenSince(start time.Time) gate.Instance {
	return gate.Instance{ID: timeID(start), Phase: gate.Running, StartedAt: start, LivenessLag: unseenGrace, MaxHold: gate.Never}
}

// configure goes on under another configuration. What is seen through other ports,
// or in another way, says nothing of a restart: the instance stays.
func (l *listening) configure(c *config.Instance, there map[uint16][]proc.Socket) {
	same := slices.Equal(l.listeners, c.Listeners)
	l.listeners, l.maxHold, l.refresh = c.Listeners, c.MaxHold, c.Refresh
	if sockets, _ := l.of(there); !same {
		l.rebase(sockets)
	}
	if l.instance.MaxHold != gate.Never {
		l.instance.MaxHold = l.maxHold
	}
}

// rebase takes these sockets for those that the instance had all along.
func (l *listening) rebase(sockets []uint64) {
	if l.instance.Phase != gate.Running {
		return
	}
	l.found(sockets)
	l.holder = holder{}
	l.seen = len(sockets) > 0
	l.instance.MaxHold = gate.Never
	if l.seen {
		l.fresh = false
		l.instance.MaxHold = l.maxHold
	}
}

// infer draws the conclusion from the sockets there are now, and from what has become of
// who held the last ones.
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
		l.instance.MaxHold = l.maxHold // the instance was there, only its sockets were not
	case fate == reopened || shared(l.sockets, sockets):
	default:
		l.replace(sockets, fate, now)
	}
	l.found(sockets)
	l.seen, l.fresh = true, false
}

// found takes note of the sockets there are.
func (l *listening) found(sockets []uint64) {
	if !slices.Equal(l.sockets, sockets) {
		l.sockets, l.holder = sockets, holder{}
	}
	l.closed, l.missed, l.lostAt = false, false, time.Time{}
}

// listens ends a boot: the first socket of the instance is there. Whoever listens now may
// have begun much later than anyone could see, so no Failure of before stands, and the
// delay of a liveness probe begins.
func (l *listening) listens(sockets []uint64, now time.Time) {
	is := gate.Instance{
		ID: l.name(sockets, now), Phase: gate.Running,
		StartedAt: l.instance.StartedAt, From: l.instance.ID, MaxHold: l.maxHold,
	}
	if l.held {
		is.StartedAt = now // the boot was given up: this is most likely another
	}
	is.LivenessLag = now.Sub(is.StartedAt)
	l.instance = is
}

// replace begins the next instance, which shares no socket with the one before. If no
// attempt has failed in between, the one has handed over to the other.
func (l *listening) replace(sockets []uint64, fate fate, now time.Time) {
	is := gate.Instance{ID: l.name(sockets, now), Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
	if !l.held && !l.missed {
		is.From, is.Restarted = l.instance.ID, fate == gone
	}
	l.instance = is
}

// lose draws the conclusion from no sockets at all. That the process is gone, that an
// attempt has failed, or that too much time has passed is the end of the instance.
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
	if l.held || l.missed || fate == gone || now.Sub(l.lostAt) >= handOverGap {
		l.instance.Phase, l.endedAt, l.lostAt = gate.Terminated, now, time.Time{}
	}
}

// end makes a target of which nothing was seen one that has ended.
func (l *listening) end(now time.Time) {
	if l.seen {
		return
	}
	l.seen, l.fresh, l.endedAt = true, false, now
	l.instance.Phase, l.instance.MaxHold = gate.Terminated, l.maxHold
}

// overdue reports whether a target has ended so long ago that a sign of life is enough to
// call the next instance running, although it does not listen.
func (l *listening) overdue(now time.Time) bool {
	return l.instance.Phase != gate.Running && now.Sub(l.endedAt) >= l.maxHold
}

// ask draws the conclusion from the question of a kubelet about a target that does not
// listen: its container runs, since then at the latest. It reports whether that is news.
func (l *listening) ask(since, now time.Time) bool {
	first := !l.asked
	l.asked = true
	switch {
	case l.overdue(now):
		l.beginUnseen(now)
	case first && l.fresh && !l.seen && since.After(l.instance.StartedAt.Add(time.Second)):
		// The agent is older than the container: nothing that was said before is about it.
		was := l.instance.ID
		l.instance = unseenSince(since)
		l.instance.From = was
	default:
		return false
	}
	return true
}

// beginUnseen begins the next instance although it does not listen.
func (l *listening) beginUnseen(now time.Time) {
	l.fresh = true
	l.instance = gate.Instance{ID: timeID(now), Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
}

// settled reports whether the same sockets as before have no consequence.
func (l *listening) settled() bool {
	return l.instance.Phase == gate.Running && !l.missed && !l.closed && l.lostAt.IsZero()
}

// wait returns how long after a read there shall be the next: not long if a change is
// waited for.
func (l *listening) wait(now time.Time) time.Duration {
	if l.held || !l.settled() && !l.overdue(now) {
		return min(l.refresh, urgentRefresh)
	}
	return l.refresh
}

// of returns the ids of the target's sockets among all there are, sorted, and their inodes.
func (l *listening) of(byPort map[uint16][]proc.Socket) (ids, inodes []uint64) {
	for _, w := range l.listeners {
		for _, found := range byPort[uint16(w.Port)] {
			if serves(found, w.Host) {
				ids, inodes = append(ids, found.ID), append(inodes, found.Inode)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), inodes
}

// serves reports whether a connection to host may end at the socket.
func serves(s proc.Socket, host string) bool {
	addr := s.Local.Addr().Unmap()
	want, err := netip.ParseAddr(host)
	want = want.Unmap().WithZone("")
	switch name := err != nil; {
	case addr.IsUnspecified() && (name || want.IsUnspecified()):
		return true // of either family
	case addr.IsUnspecified():
		return addr.Is4() == want.Is4() || want.Is4() && !s.V6Only
	case !name && !want.IsUnspecified():
		return addr.WithZone("") == want
	case !name, config.IsLocalhost(host):
		return addr.IsLoopback()
	}
	return true // a name, which is not looked up
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

// name names an instance by its sockets. A cookie never comes back, but an inode may.
func (l *listening) name(sockets []uint64, now time.Time) string {
	if id := socketID(sockets); id != l.instance.ID {
		return id
	}
	return timeID(now)
}

// socketID names an instance by its oldest socket, so that an agent that starts anew
// calls it the same.
func socketID(sockets []uint64) string { return fmt.Sprintf("socket-%x", sockets[0]) }

// timeID names an instance that has no socket by the moment it began.
func timeID(t time.Time) string { return "since-" + t.UTC().Format("20060102T150405.000Z") }

// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package instance

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// listening infers the instances of one target from its listening sockets. It is
// the rules alone: it has no clock and reads nothing.
//
// Four views follow each other: unseen (no socket yet: as static), running with
// sockets, ended (they are gone), and running without (nothing came within maxHold,
// so that a boot that hangs is judged in the end).
type listening struct {
	listeners []config.Listener
	maxHold   time.Duration
	refresh   time.Duration

	instance gate.Instance
	// sockets are the ids of the last set that was not empty, sorted.
	sockets []uint64
	seen    bool // sockets were seen
	without bool // the instance runs and was never seen with a socket, after another was
	endedAt time.Time
	held    bool // a probe of the target waits for a new instance
}

// begin returns a target that is first looked at now, with the sockets there are.
// They belong to an instance older than anyone remembers.
func begin(c *config.Instance, there map[uint16][]socket, now time.Time) *listening {
	l := &listening{listeners: c.Listeners, maxHold: c.MaxHold, refresh: c.Refresh}
	if sockets := l.of(there); len(sockets) > 0 {
		l.sockets, l.seen = sockets, true
		l.instance = gate.Instance{ID: socketID(sockets), Phase: gate.Running, MaxHold: l.maxHold}
	} else {
		l.instance = gate.Instance{ID: timeID(now), Phase: gate.Running, StartedAt: now, MaxHold: gate.Never}
	}
	return l
}

// configure goes on under another configuration. What is seen through other ports,
// or in another way, says nothing of a restart: the instance stays.
func (l *listening) configure(c *config.Instance, there map[uint16][]socket) {
	same := slices.Equal(l.listeners, c.Listeners)
	l.listeners, l.maxHold, l.refresh = c.Listeners, c.MaxHold, c.Refresh
	if !same {
		l.rebase(l.of(there))
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
	l.sockets, l.seen, l.without = sockets, len(sockets) > 0, false
	l.instance.MaxHold = gate.Never
	if l.seen {
		l.instance.MaxHold = l.maxHold
	}
}

// look draws the conclusion from the sockets there are now.
func (l *listening) look(sockets []uint64, now time.Time) {
	some, running := len(sockets) > 0, l.instance.Phase == gate.Running
	switch {
	case some && !l.seen:
		// What was booting all the time listens at last.
		l.seen = true
		l.instance.MaxHold = l.maxHold
	case some && running && l.without && !l.held:
		// The boot that took so long has come to its end.
		l.without = false
	case some && (!running || !shared(l.sockets, sockets)):
		l.without = false
		id := socketID(sockets)
		if id == l.instance.ID {
			id = timeID(now) // a cookie never comes back, but an inode may
		}
		l.instance = gate.Instance{ID: id, Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
	case !some && running && l.seen && !l.without:
		l.instance.Phase = gate.Terminated
		l.endedAt = now
	case !some && !running && now.Sub(l.endedAt) >= l.maxHold:
		l.beginWithout(now)
	}
	if some {
		l.sockets = sockets
	}
}

// end makes a target of which nothing was seen one that has ended.
func (l *listening) end(now time.Time) {
	if l.seen {
		return
	}
	l.seen, l.endedAt = true, now
	l.instance.Phase, l.instance.MaxHold = gate.Terminated, l.maxHold
}

// beginWithout begins the next instance although it does not listen.
func (l *listening) beginWithout(now time.Time) {
	l.without = true
	l.instance = gate.Instance{ID: timeID(now), Phase: gate.Running, StartedAt: now, MaxHold: l.maxHold}
}

// wait returns how long after a read there shall be the next: not long if a change is
// waited for.
func (l *listening) wait() time.Duration {
	if l.held || l.instance.Phase != gate.Running {
		return min(l.refresh, urgentRefresh)
	}
	return l.refresh
}

// of returns the ids of the target's sockets, sorted, among all there are.
func (l *listening) of(byPort map[uint16][]socket) []uint64 {
	var ids []uint64
	for _, w := range l.listeners {
		for _, found := range byPort[uint16(w.Port)] {
			if serves(found.local.Addr(), w.Host) {
				ids = append(ids, found.id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// serves reports whether a connection to host may end at a socket that is bound to
// addr.
func serves(addr netip.Addr, host string) bool {
	addr = addr.Unmap()
	if addr.IsUnspecified() {
		return true
	}
	want, err := netip.ParseAddr(host)
	switch {
	case err == nil && !want.IsUnspecified():
		return addr.WithZone("") == want.Unmap().WithZone("")
	case err == nil, config.IsLocalhost(host):
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

// socketID names an instance by its oldest socket, so that an agent that starts anew
// calls it the same.
func socketID(sockets []uint64) string { return fmt.Sprintf("socket-%x", sockets[0]) }

// timeID names an instance that has no socket by the moment it began.
func timeID(t time.Time) string { return "since-" + t.UTC().Format("20060102T150405.000Z") }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// holder is the processes that hold the sockets of a target. The zero value means that nobody
// has looked.
type holder struct {
	looked    bool
	processes []proc.Process // a few of them; empty if none is visible
	command   string         // the command line of one
}

// fate says what has become of the holder of a target's last sockets.
type fate uint8

const (
	unseen   fate = iota // the holder is not visible
	gone                 // none of its processes runs any more
	runs                 // one of its processes runs
	reopened             // one of its processes runs and holds the current sockets
)

// maxHolders bounds how many processes a holder has: many workers may share a socket.
const maxHolders = 8

// witness sees the processes of the agent's own process namespace, as far as permissions allow.
type witness interface {
	// fate returns the fate of a holder. inodes are those of the target's current sockets.
	fate(h *holder, inodes []uint64) fate
	// holders returns the holders of these sockets, by inode; false if that would cost too
	// much now.
	holders(inodes []uint64) (map[uint64]*holder, bool)
	// begun reports which of these command lines belong to a process that began at the given
	// time or later; false if that would cost too much now.
	begun(commands map[string]time.Time) (map[string]bool, bool)
}

// rebirth is how long before the source saw the end of an instance the next process may have
// begun.
const rebirth = 5 * time.Second

// fates returns the fates of targets whose sockets have gone. It reads files: the caller holds
// reading and not mu.
func (s *Source) fates() map[string]fate {
	type question struct {
		name   string
		holder holder
		inodes []uint64
	}
	var asked []question
	s.mu.Lock()
	for name, l := range s.targets {
		if len(l.holder.processes) == 0 || l.fresh || l.instance.Phase != gate.Running {
			continue
		}
		if ids, inodes := l.of(&s.there); !shared(l.sockets, ids) {
			asked = append(asked, question{name, l.holder, inodes})
		}
	}
	s.mu.Unlock()
	if len(asked) == 0 {
		return nil
	}
	fates := make(map[string]fate, len(asked))
	for _, q := range asked {
		fates[q.name] = s.witness.fate(&q.holder, q.inodes)
	}
	return fates
}

// reborn returns the targets that ended long ago and do not listen, but run: a process has
// the command line of the one before. The caller holds reading and not mu.
func (s *Source) reborn(now time.Time) map[string]bool {
	commands, targets := map[string]time.Time{}, map[string]string{}
	s.mu.Lock()
	for name, l := range s.targets {
		if command := l.holder.command; command != "" && l.overdue(now) {
			targets[name] = command
			// If two targets share a command line, a process must be younger than both ends,
			// because one of the targets may have ended for good.
			if since := l.endedAt.Add(-rebirth); since.After(commands[command]) {
				commands[command] = since
			}
		}
	}
	s.mu.Unlock()
	if len(commands) == 0 {
		return nil
	}
	begun, _ := s.witness.begun(commands)
	reborn := map[string]bool{}
	for name, command := range targets {
		reborn[name] = begun[command]
	}
	return reborn
}

// seek finds the holders of new sockets. The caller holds reading and not mu.
func (s *Source) seek() {
	var all []uint64
	targets := map[string][]uint64{}
	s.mu.Lock()
	for name, l := range s.targets {
		if l.holder.looked || l.fresh || !l.seen || !l.settled() {
			continue
		}
		if _, inodes := l.of(&s.there); len(inodes) > 0 {
			all, targets[name] = append(all, inodes...), inodes
		}
	}
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	found, ok := s.witness.holders(slices.Compact(all))
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, inodes := range targets {
		l := s.targets[name]
		if l == nil {
			continue
		}
		l.holder = holder{looked: true}
		for _, inode := range inodes {
			if h := found[inode]; h != nil {
				l.holder.add(h)
			}
		}
	}
}

// add adds the processes that hold another socket.
func (h *holder) add(other *holder) {
	if h.command == "" {
		h.command = other.command
	}
	for _, p := range other.processes {
		if len(h.processes) < maxHolders && !slices.Contains(h.processes, p) {
			h.processes = append(h.processes, p)
		}
	}
}

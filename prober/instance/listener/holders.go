// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// holder is who holds the sockets of a target. The zero value: nobody has looked.
type holder struct {
	looked    bool
	processes []proc.Process // a few of them; empty: none can be seen
	command   string         // the command line of one
}

// fate is what has become of the holder of a target's last sockets.
type fate uint8

const (
	unseen   fate = iota // nobody can see the holder
	gone                 // none of its processes runs any more
	runs                 // one of them does
	reopened             // one of them does, and holds the sockets that are there now
)

// maxHolders bounds how many processes are remembered of a target: workers that share a
// socket may be many.
const maxHolders = 8

// witness sees the processes of the agent's own process namespace, as far as it may.
type witness interface {
	// fate looks after the processes of a holder. inodes are those of the target's sockets.
	fate(h *holder, inodes []uint64) fate
	// holders returns who holds these sockets, by inode; false: it would cost too much now.
	holders(inodes []uint64) (map[uint64]*holder, bool)
	// begun reports which of these command lines a process has that began at the given
	// time or later; false: it would cost too much now.
	begun(commands map[string]time.Time) (map[string]bool, bool)
}

// rebirth is how much earlier than the end of an instance was seen the next process may
// have begun.
const rebirth = 5 * time.Second

// fates asks what has become of those whose sockets are not there any more. Called with
// reading held and without mu: it reads files.
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
		if ids, inodes := l.of(s.byPort); !shared(l.sockets, ids) {
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

// reborn returns the targets that have ended long ago, do not listen, and run all the
// same: a process has the command line of the one before. Called as fates.
func (s *Source) reborn(now time.Time) map[string]bool {
	commands, targets := map[string]time.Time{}, map[string]string{}
	s.mu.Lock()
	for name, l := range s.targets {
		if command := l.holder.command; command != "" && l.overdue(now) {
			targets[name] = command
			// Of two with one command line a process counts that is younger than both ends: one
			// of them may have ended for good.
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

// seek finds out who holds the sockets that nobody has asked about yet. Called as fates.
func (s *Source) seek() {
	var all []uint64
	targets := map[string][]uint64{}
	s.mu.Lock()
	for name, l := range s.targets {
		if l.holder.looked || l.fresh || !l.seen || !l.settled() {
			continue
		}
		if _, inodes := l.of(s.byPort); len(inodes) > 0 {
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

// add adds the processes of another socket.
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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"slices"
	"time"
)

// proc is the witness that reads /proc.
type proc struct {
	procs procs
	next  time.Time // when all processes may be gone through again
}

func newWitness() witness { return &proc{procs: procs{root: "/proc"}} }

// fate says unseen of a process that cannot be read: it may run.
func (p *proc) fate(h *holder, inodes []uint64) fate {
	is := gone
	for _, who := range h.processes {
		switch running, err := p.procs.runs(who); {
		case err != nil && is == gone:
			is = unseen
		case err == nil && running && p.owns(who.pid, inodes):
			return reopened
		case err == nil && running:
			is = runs
		}
	}
	return is
}

// owns reports whether a process holds one of the sockets.
func (p *proc) owns(pid int, inodes []uint64) bool {
	owns := false
	err := p.procs.holds(pid, func(inode uint64) bool {
		owns = slices.Contains(inodes, inode)
		return !owns
	})
	return owns && err == nil
}

// holders passes over what may not be read, and over a service manager that holds
// sockets for its services: it runs on when they end.
func (p *proc) holders(inodes []uint64) (map[uint64]*holder, bool) {
	found := map[uint64]*holder{}
	ok := p.walk(func(pid int) {
		one := p.holderOf(pid, inodes)
		for _, inode := range one.inodes {
			if found[inode] == nil {
				found[inode] = new(holder)
			}
			found[inode].add(&one.holder)
		}
	})
	return found, ok
}

// holds is a process with those of the sought sockets that it has open.
type holds struct {
	holder
	inodes []uint64
}

func (p *proc) holderOf(pid int, inodes []uint64) (one holds) {
	_ = p.procs.holds(pid, func(inode uint64) bool { // what cannot be read is not ours to see
		if _, sought := slices.BinarySearch(inodes, inode); sought {
			one.inodes = append(one.inodes, inode)
		}
		return true
	})
	if len(one.inodes) == 0 {
		return holds{}
	}
	is, err := p.procs.stat(pid)
	if err != nil || is.ended || is.name == "systemd" {
		return holds{}
	}
	command, err := p.procs.command(pid)
	if err != nil {
		return holds{}
	}
	one.holder = holder{processes: []process{is.process}, command: command}
	return one
}

func (p *proc) begun(commands map[string]time.Time) (map[string]bool, bool) {
	found := map[string]bool{}
	ok := p.walk(func(pid int) {
		command, err := p.procs.command(pid)
		if err != nil || command == "" {
			return
		}
		since, sought := commands[command]
		if !sought || found[command] {
			return
		}
		is, err := p.procs.stat(pid)
		found[command] = err == nil && !is.ended && age(is.process) <= time.Since(since)
	})
	return found, ok
}

// walk visits every process, unless that would cost too much by now.
func (p *proc) walk(visit func(pid int)) bool {
	began := time.Now()
	if began.Before(p.next) || p.procs.ours() != nil {
		return false
	}
	pids, err := p.procs.all()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		visit(pid)
	}
	ended := time.Now()
	p.next = ended.Add(lookGap(ended.Sub(began)))
	return true
}

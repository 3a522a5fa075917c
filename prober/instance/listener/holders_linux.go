// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// procWitness is the witness that reads /proc.
type procWitness struct {
	procs proc.FS
	next  time.Time // the time of the next walk over all processes
}

func newWitness() witness { return &procWitness{procs: proc.FS{Root: "/proc"}} }

// fate returns unseen if a process cannot be read, because it may run.
func (p *procWitness) fate(h *holder, inodes []uint64) fate {
	is := gone
	for _, who := range h.processes {
		switch running, err := p.procs.Runs(who); {
		case err != nil && is == gone:
			is = unseen
		case err == nil && running && p.owns(who.PID, inodes):
			return reopened
		case err == nil && running:
			is = runs
		}
	}
	return is
}

// owns reports whether a process holds one of the sockets.
func (p *procWitness) owns(pid int, inodes []uint64) bool {
	owns := false
	err := p.procs.VisitSockets(pid, func(inode uint64) bool {
		owns = slices.Contains(inodes, inode)
		return !owns
	})
	return owns && err == nil
}

// holders skips processes that the agent may not read, and a service manager that holds sockets
// for its services, because the manager runs on when they end.
func (p *procWitness) holders(inodes []uint64) (map[uint64]*holder, bool) {
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

// holds is a process and those of the sought sockets that it has open.
type holds struct {
	holder
	inodes []uint64
}

func (p *procWitness) holderOf(pid int, inodes []uint64) (one holds) {
	_ = p.procs.VisitSockets(pid, func(inode uint64) bool { // the agent may not see what it cannot read
		if _, sought := slices.BinarySearch(inodes, inode); sought {
			one.inodes = append(one.inodes, inode)
		}
		return true
	})
	if len(one.inodes) == 0 {
		return holds{}
	}
	is, err := p.procs.Stat(pid)
	if err != nil || is.Ended || is.Name == "systemd" {
		return holds{}
	}
	command, err := p.procs.Command(pid)
	if err != nil {
		return holds{}
	}
	one.holder = holder{processes: []proc.Process{is.Process}, command: command}
	return one
}

func (p *procWitness) begun(commands map[string]time.Time) (map[string]bool, bool) {
	found := map[string]bool{}
	ok := p.walk(func(pid int) {
		command, err := p.procs.Command(pid)
		if err != nil || command == "" {
			return
		}
		since, sought := commands[command]
		if !sought || found[command] {
			return
		}
		is, err := p.procs.Stat(pid)
		found[command] = err == nil && !is.Ended && proc.Age(is.Process) <= time.Since(since)
	})
	return found, ok
}

// walk visits every process. It returns false if a walk would cost too much now.
func (p *procWitness) walk(visit func(pid int)) bool {
	began := time.Now()
	if began.Before(p.next) || p.procs.CheckNamespace() != nil {
		return false
	}
	pids, err := p.procs.All()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		visit(pid)
	}
	ended := time.Now()
	p.next = ended.Add(instance.LookGap(ended.Sub(began)))
	return true
}

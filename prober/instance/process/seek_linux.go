// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// newborn is how long after its beginning the command line of a process may still
	// change: a process begins with its parent's.
	newborn = time.Second
	// seekAgain is the time between two scans although there is no new process.
	seekAgain = time.Second
)

// scan is the result of one walk over all processes. A scan serves every target; a process
// found in a scan is checked once more.
type scan struct {
	pids     []int
	commands []string         // one for each process; empty if no target has a pattern
	owners   map[uint64][]int // of the listening sockets; nil if no target has a port
	denied   bool             // the sockets of some processes could not be read
	hidden   bool             // some processes are not visible
	taken    time.Time
}

// walk takes a scan, unless a scan would cost too much now; then it returns the last error.
func (p *Source) walk() error {
	e := &p.eyes
	if time.Now().Before(e.scanNext) {
		return e.scanErr
	}
	e.scanNext = e.costly(func() {
		var s *scan
		if s, e.scanErr = p.seeAll(); e.scanErr == nil {
			e.scan = s
		}
	})
	return e.scanErr
}

func (p *Source) seeAll() (*scan, error) {
	e := &p.eyes
	began := time.Now()
	patterns, ports := false, false
	for _, w := range p.all() {
		patterns, ports = patterns || w.match != "", ports || w.port != 0
	}
	pids, err := e.procs.All()
	if err != nil {
		return nil, err
	}
	s := &scan{pids: pids, hidden: !slices.Contains(pids, 1), taken: began}
	if patterns {
		s.commands = make([]string, len(pids))
		for i, pid := range pids {
			command, err := e.procs.Command(pid)
			if starved(err) {
				return nil, err
			}
			s.hidden = s.hidden || err != nil && !errors.Is(err, proc.ErrGone)
			s.commands[i] = command
		}
	}
	if ports {
		s.owners = make(map[uint64][]int)
		for _, one := range e.found {
			s.owners[one.Inode] = nil
		}
		for _, pid := range pids {
			err := e.procs.VisitSockets(pid, func(inode uint64) bool {
				if of, listens := s.owners[inode]; listens && !slices.Contains(of, pid) {
					s.owners[inode] = append(of, pid)
				}
				return true
			})
			if starved(err) {
				return nil, err
			}
			s.denied = s.denied || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
		}
	}
	return s, nil
}

// starved reports whether the agent lacked a resource: such an error says nothing about a
// process.
func starved(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// byMatch finds the oldest process whose command line matches. Later processes are younger,
// so byMatch seeks none while the leader runs.
func (p *Source) byMatch(w *watched) (proc.Process, bool, error) {
	if w.alive && !w.anew {
		return w.lead, true, nil
	}
	e := &p.eyes
	if s := e.scan; s != nil && w.tried != s {
		w.tried = s
		if found, err := p.oldestMatch(w, s); found != (proc.Process{}) || err != nil {
			return found, err == nil, err
		}
	}
	if !e.worthwhile() {
		return proc.Process{}, false, nil
	}
	if err := p.walk(); err != nil {
		return proc.Process{}, false, err
	}
	s := e.scan
	if s == nil || w.tried == s {
		return proc.Process{}, false, nil // not yet: it would cost too much
	}
	w.tried = s
	found, err := p.oldestMatch(w, s)
	if err == nil && found == (proc.Process{}) && s.hidden {
		err = errHidden
	}
	return found, err == nil, err
}

// worthwhile reports whether a scan can show more than the last one: a process has begun since,
// or is so young that its command line may still change, or the last scan is long ago.
func (e *eyes) worthwhile() bool {
	now := time.Now()
	newest, err := e.procs.Newest()
	if err != nil || newest != e.newest {
		e.newest, e.forked = newest, now
	}
	return e.scan == nil || e.scan.commands == nil || now.Sub(e.forked) < newborn || now.Sub(e.scan.taken) >= seekAgain
}

func (p *Source) oldestMatch(w *watched, s *scan) (proc.Process, error) {
	var oldest proc.Process
	for i, command := range s.commands {
		if command == "" || !w.pattern.MatchString(command) {
			continue
		}
		is, err := p.eyes.procs.Stat(s.pids[i])
		if err != nil && !errors.Is(err, proc.ErrGone) {
			return proc.Process{}, err
		}
		if err != nil || is.Ended || oldest != (proc.Process{}) && oldest.Before(is.Process) {
			continue
		}
		// Another process may have the PID by now.
		if now, err := p.eyes.procs.Command(is.PID); err != nil || now != command || p.descends(is) {
			continue
		}
		oldest = is.Process
	}
	return oldest, nil
}

// descends reports whether a process is the agent or was started by it, as the commands
// of exec probes are.
func (p *Source) descends(is proc.Stat) bool {
	for us := os.Getpid(); is.PID != us; {
		parent, err := p.eyes.procs.Stat(is.Parent)
		if err != nil || parent.Start > is.Start {
			return false
		}
		is = parent
	}
	return true
}

// byPort finds the oldest process that holds a socket listening on the port. It seeks a process
// only when the sockets have changed. A leader that no longer holds any of them leads on until
// it ends or another process holds one.
func (p *Source) byPort(w *watched) (proc.Process, bool, error) {
	e := &p.eyes
	if e.foundErr != nil {
		return proc.Process{}, false, e.foundErr
	}
	inodes := e.on(w.port)
	if len(inodes) == 0 {
		if w.anew && !e.current {
			return proc.Process{}, false, nil // not known yet
		}
		w.inodes = nil
		return w.keep()
	}
	same := slices.Equal(inodes, w.inodes)
	if w.alive && !w.anew && (same || e.owns(w.lead.PID, inodes)) {
		w.inodes = inodes
		return w.lead, true, nil
	}
	if s := e.scan; s != nil && w.tried != s {
		w.tried = s
		if found, err := p.oldestOwner(s, inodes); found != (proc.Process{}) || err != nil {
			w.inodes = inodes
			return found, err == nil, err
		}
	}
	if same && time.Now().Before(w.retry) {
		return proc.Process{}, false, nil
	}
	if err := p.walk(); err != nil {
		return proc.Process{}, false, err
	}
	s := e.scan
	if s == nil || w.tried == s {
		return proc.Process{}, false, nil // not yet: it would cost too much
	}
	w.tried, w.inodes, w.retry = s, inodes, time.Now().Add(seekAgain)
	if found, err := p.oldestOwner(s, inodes); found != (proc.Process{}) || err != nil {
		return found, err == nil, err
	}
	// The owner may have ended during the scan.
	e.listening()
	switch {
	case e.foundErr != nil:
		return proc.Process{}, false, e.foundErr
	case !slices.Equal(inodes, e.on(w.port)):
		w.inodes = nil
		return proc.Process{}, false, nil
	case s.denied || s.hidden:
		return proc.Process{}, false, errDenied
	}
	return proc.Process{}, false, errNobody
}

// on returns the inodes of the sockets that listen on a port, ordered.
func (e *eyes) on(port int) []uint64 {
	var inodes []uint64
	for _, one := range e.found {
		if int(one.Local.Port()) == port {
			inodes = append(inodes, one.Inode)
		}
	}
	slices.Sort(inodes)
	return inodes
}

// owns reports whether a process holds one of the sockets.
func (e *eyes) owns(pid int, inodes []uint64) bool {
	owns := false
	err := e.procs.VisitSockets(pid, func(inode uint64) bool {
		_, owns = slices.BinarySearch(inodes, inode)
		return !owns
	})
	return owns && err == nil
}

// oldestOwner returns the oldest process that holds one of the sockets, but not a service
// manager that holds sockets for its services.
func (p *Source) oldestOwner(s *scan, inodes []uint64) (proc.Process, error) {
	var oldest proc.Process
	for _, inode := range inodes {
		for _, pid := range s.owners[inode] {
			is, err := p.eyes.procs.Stat(pid)
			switch {
			case err != nil && !errors.Is(err, proc.ErrGone):
				return proc.Process{}, err
			case err != nil || is.Ended || is.Name == "systemd":
			case oldest != (proc.Process{}) && oldest.Before(is.Process):
			case p.eyes.owns(pid, inodes):
				oldest = is.Process
			}
		}
	}
	return oldest, nil
}

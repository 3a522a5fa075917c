// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// The errors of a look say what is wrong and what to do about it.
var (
	errHidden = errors.New("other users' processes are hidden (hidepid on /proc): run the agent as the target's user or in the group that may see them")
	errDenied = errors.New("cannot see the owner of the port: the agent needs the target's user ID or CAP_SYS_PTRACE")
	errNobody = errors.New("no process that the agent sees owns the port: agent and target must share a process namespace (in a pod: shareProcessNamespace: true)")
	errItself = errors.New("the pid file names the agent itself: agent and target must share a process namespace (in a pod: shareProcessNamespace: true)")
)

// eyes is the state of looks. Only the holder of the token may use it.
type eyes struct {
	procs proc.FS
	boot  string        // the first 8 digits of the boot's id
	aside time.Duration // the time of a look spent in costly

	sockets     proc.Sockets
	found       []proc.Socket // the last reading
	foundErr    error
	socketsNext time.Time // when the next reading may be
	current     bool      // found is of this look

	scan     *scan     // the last scan, while some leader is sought
	scanErr  error     // of the last attempt at a scan
	scanNext time.Time // when the next scan may be
	newest   string    // the newest process at the last look
	forked   time.Time // when newest changed
}

// id is the identity of a leader's life.
func (e *eyes) id(who proc.Process) string {
	if e.boot == "" {
		text, err := os.ReadFile(filepath.Join(e.procs.Root, "sys/kernel/random/boot_id"))
		if err != nil || len(text) < 8 {
			text = []byte("00000000") // a sandbox without a boot id: the ID need not outlive the agent
		}
		e.boot = string(text[:8])
	}
	return who.Life(e.boot)
}

// costly calls f, which not every look needs, and returns when f may be called again.
func (e *eyes) costly(f func()) (next time.Time) {
	began := time.Now()
	f()
	ended := time.Now()
	e.aside += ended.Sub(began)
	return ended.Add(instance.LookGap(ended.Sub(began)))
}

// listening reads the sockets.
func (e *eyes) listening() {
	e.socketsNext = e.costly(func() {
		e.found, e.foundErr = e.sockets.Read(e.found[:0])
	})
	e.current = true
}

// look looks at some targets and publishes what it sees. It returns how much of its time it
// spent in costly. The caller holds the token.
func (p *Source) look(ws []*watched) (aside time.Duration) {
	e := &p.eyes
	e.aside, e.current = 0, false
	if e.procs.Root == "" {
		e.procs.Root = "/proc"
	}
	if !p.sees(e.procs.CheckNamespace()) {
		return 0
	}
	if slices.ContainsFunc(ws, func(w *watched) bool { return w.port != 0 }) && !time.Now().Before(e.socketsNext) {
		e.listening()
	}
	settled := true
	for _, w := range ws {
		p.lookAt(w)
		p.publish(w)
		settled = settled && w.alive && !w.anew
	}
	if settled && !time.Now().Before(e.scanNext) {
		e.scan = nil // nobody needs the scan, and the next may be taken
	}
	p.mu.Lock()
	p.scanned = e.scan != nil
	p.mu.Unlock()
	return e.aside
}

// sees records whether processes can be looked up at all, and returns whether err is nil.
func (p *Source) sees(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	p.mu.Lock()
	was := p.broken
	p.broken = text
	if was != text {
		for name := range p.targets {
			p.changed[name] = true
		}
	}
	p.mu.Unlock()
	switch {
	case was == "" && err != nil:
		p.notes.Add(func() { p.log.Warn("cannot look up processes: the last view stays", "err", err) })
	case was != "" && err == nil:
		p.notes.Add(func() { p.log.Info("can look up processes again") })
	}
	return err == nil
}

// lookAt checks whether a target's leader runs, and looks for another.
func (p *Source) lookAt(w *watched) {
	e := &p.eyes
	if w.alive {
		alive, err := e.procs.Runs(w.lead)
		if err != nil {
			w.err = err // the leader may well run
			return
		}
		if !alive {
			w.alive, w.tried, w.inodes = false, nil, nil
		}
	}
	var next proc.Process
	var decided bool
	var err error
	switch {
	case w.pidFile != "":
		next, decided, err = p.byPIDFile(w)
	case w.port != 0:
		next, decided, err = p.byPort(w)
	case w.match != "":
		next, decided, err = p.byMatch(w)
	}
	if decided || err != nil {
		w.err = err
	}
	switch {
	case !decided:
	case next == proc.Process{}:
		if w.anew { // the old leader is no longer sought
			w.lead, w.alive, w.since = proc.Process{}, false, time.Time{}
		}
		w.anew = false
	case next == w.lead && w.alive:
		w.anew = false
	default:
		if next != w.lead {
			w.lead, w.since = next, time.Now().Add(-proc.Age(next))
		}
		w.alive, w.anew = true, false
	}
}

// keep returns the present leader, for a look that finds no other.
func (w *watched) keep() (proc.Process, bool, error) {
	if w.alive && !w.anew {
		return w.lead, true, nil
	}
	return proc.Process{}, true, nil
}

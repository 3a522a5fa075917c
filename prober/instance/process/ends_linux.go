// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// ends waits for the ends of processes, each by a pidfd in the runtime's poller: no
// thread waits, and nobody has to ask.
type ends struct {
	seen chan struct{} // tells that there is something to collect
	proc.FS
	waits map[proc.Process]*os.File // nil: its end is not told, it has to be asked for
	wait  sync.WaitGroup

	mu    sync.Mutex
	ended map[proc.Process]*os.File
}

func newEnds() *ends {
	return &ends{
		seen: make(chan struct{}, 1), FS: proc.FS{Root: "/proc"},
		waits: make(map[proc.Process]*os.File), ended: make(map[proc.Process]*os.File),
	}
}

// follow waits for these and no others, and reports whether some have to be asked for.
func (e *ends) follow(leaders map[proc.Process]bool) (ask bool) {
	for who, f := range e.waits {
		if !leaders[who] {
			e.drop(who, f)
		}
	}
	for who := range leaders {
		f, known := e.waits[who]
		if !known {
			f = e.open(who)
			e.waits[who] = f
		}
		ask = ask || f == nil
	}
	return ask
}

// open waits for one, if the kernel will tell.
func (e *ends) open(who proc.Process) *os.File {
	fd, err := unix.PidfdOpen(who.PID, 0)
	if err != nil {
		return nil // it has ended, or the kernel or a filter does not let us
	}
	// Before Linux 5.10 that cannot be asked for at the opening.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	// The descriptor is of whoever has the number now.
	if alive, err := e.Runs(who); err != nil || !alive {
		_ = f.Close()
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil
	}
	e.wait.Go(func() {
		// Whether it has ended, or the poller takes no pidfd, or nobody waits any more,
		// who collects it will find out.
		_ = raw.Read(func(fd uintptr) bool {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(poll, 0)
			return err == nil && n > 0
		})
		e.mu.Lock()
		e.ended[who] = f
		e.mu.Unlock()
		select {
		case e.seen <- struct{}{}:
		default:
		}
	})
	return f
}

// drop does not wait for one any more.
func (e *ends) drop(who proc.Process, f *os.File) {
	delete(e.waits, who)
	if f != nil {
		_ = f.Close()
	}
}

// collect returns those that have ended. A leader that is not seen to have, is asked for.
func (e *ends) collect() map[proc.Process]bool {
	e.mu.Lock()
	ended := e.ended
	e.ended = make(map[proc.Process]*os.File)
	e.mu.Unlock()
	taken := make(map[proc.Process]bool)
	for who, f := range ended {
		if f == e.waits[who] {
			_ = f.Close() // of a pidfd there is nothing to lose
			e.waits[who] = nil
			taken[who] = true
		}
	}
	return taken
}

// close ends all waits.
func (e *ends) close() {
	for who, f := range e.waits {
		e.drop(who, f)
	}
	e.wait.Wait()
}

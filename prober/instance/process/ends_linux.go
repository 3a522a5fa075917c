// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// ends waits for the ends of processes, each with a pidfd in the runtime's poller, so that no
// thread waits and nothing polls.
type ends struct {
	seen chan struct{} // tells that collect has something to return
	proc.FS
	waits map[proc.Process]*os.File // nil: the end of this process must be polled
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

// follow waits for exactly these processes, and reports whether some must be polled.
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

// open waits for a process. It returns nil if the kernel cannot report its end.
func (e *ends) open(who proc.Process) *os.File {
	fd, err := unix.PidfdOpen(who.PID, 0)
	if err != nil {
		return nil // the process has ended, or the kernel or a filter refuses
	}
	// Before Linux 5.10, pidfd_open has no flag for this.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	// The descriptor belongs to the process that has the PID now.
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
		// collect finds out whether the process has ended, the poller takes no pidfd, or
		// nobody waits any more.
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

// drop ends the wait for a process.
func (e *ends) drop(who proc.Process, f *os.File) {
	delete(e.waits, who)
	if f != nil {
		_ = f.Close()
	}
}

// collect returns the processes that have ended. If the wait for a process was over without
// its end, the process must be polled from now on.
func (e *ends) collect() map[proc.Process]bool {
	e.mu.Lock()
	ended := e.ended
	e.ended = make(map[proc.Process]*os.File)
	e.mu.Unlock()
	taken := make(map[proc.Process]bool)
	for who, f := range ended {
		if f == e.waits[who] {
			_ = f.Close() // a pidfd has no data to lose
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

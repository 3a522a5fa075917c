// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// children are the processes that startChild has started and waitChild has not reaped yet. The
// variable is global because a process has only one set of children, and any part of it can take
// the exit status of any child. A program that runs ReapOrphans must start processes in no other
// way.
//
// A pid or process group is signalled only with mu held and the process in own. Its leader is
// then not reaped yet, at most a zombie, and the kernel gives neither number to another process.
var children = struct {
	mu  sync.Mutex
	own map[int]*child
	// starting has the starts between fork and claim; suspect is the dead child that may
	// be an orphan. See orphan.
	starting *sync.WaitGroup
	suspect  int
	// reaped tells the reaper that a child in own has been reaped.
	reaped chan struct{}
}{
	own:      make(map[int]*child),
	starting: new(sync.WaitGroup),
	reaped:   make(chan struct{}, 1),
}

// child is a process that the agent has started.
type child struct{ pid int }

// startChild starts a process as the leader of a group of its own. The group exists when
// startChild returns: Go sets the group in the child and returns after the exec.
//
// Pdeathsig is not set, because the kernel sends it when the forking thread ends, not the
// process, and Go ends threads.
func startChild(path string, argv []string, attr *syscall.ProcAttr) (*child, error) {
	children.mu.Lock()
	starting := children.starting
	starting.Add(1)
	children.mu.Unlock()
	defer starting.Done()

	attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	// Package os would wait for the process in a thread.
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	c := &child{pid: pid}
	claim(c)
	return c, nil
}

// claim adds c to own. Before that orphan may suspect c, if c is dead already.
func claim(c *child) {
	children.mu.Lock()
	defer children.mu.Unlock()
	children.own[c.pid] = c
	if children.suspect == c.pid {
		children.suspect = 0
	}
}

// over reports whether c has ended, and leaves c a zombie. It drops an error, which waitChild
// will meet and return.
func (c *child) over() bool {
	pid, err := exited(unix.P_PID, c.pid, unix.WNOHANG)
	return pid != 0 || err != nil
}

// await waits until c has ended or the attempt is over, and reports whether c has ended. The
// runtime's poller waits for the pidfd, if there is one.
func (c *child) await(watch *dial.Stopwatch) (over bool) {
	fd, err := unix.PidfdOpen(c.pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return c.watch(watch)
	}
	handle := os.NewFile(uintptr(fd), "pidfd")
	defer shut(handle)
	conn, err := handle.SyscallConn()
	if err != nil {
		return c.watch(watch)
	}
	for next, ended := watch.Begin(), false; !over && !ended; next, _, ended = watch.Tick() {
		if handle.SetReadDeadline(next) != nil {
			return c.watch(watch)
		}
		// The only error is that the step is over.
		_ = conn.Read(func(uintptr) bool {
			over = c.over()
			return over
		})
	}
	return over
}

// glance is the time between two looks at a command for which the kernel has no pidfd.
const glance = 10 * time.Millisecond

// watch is await without a pidfd.
func (c *child) watch(watch *dial.Stopwatch) (over bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for range timer.C {
		if c.over() {
			return true
		}
		next, _, ended := watch.Tick()
		if ended {
			return false
		}
		timer.Reset(min(time.Until(next), glance))
	}
	return false
}

// killChild kills the group of c and reports whether c was running until then. waitChild waits
// for the end of c. A process that SIGKILL does not end (in uninterruptible sleep, or of another
// user by now) makes the attempt last: a late turn is better than an overlap.
func killChild(c *child) bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	if children.own[c.pid] != c {
		return false
	}
	if pid, err := exited(unix.P_PID, c.pid, unix.WNOHANG); pid != 0 && err == nil {
		return false
	}
	// Errors do not matter: ESRCH is the aim, and there is no remedy for EPERM.
	_ = unix.Kill(-c.pid, unix.SIGKILL)
	// The child may have moved to another group.
	_ = unix.Kill(c.pid, unix.SIGKILL)
	return true
}

// waitChild waits for c to end, kills the rest of its group, and reaps c, in that order: see
// children. Otherwise background processes would pile up from turn to turn, or run into the next
// turn. A kill of a group leaves no gap: the kill reaches a fork that is under way, or the fork
// fails. A child that has not ended yet takes an OS thread until it does.
func waitChild(c *child) (exitState, error) {
	_, lookErr := exited(unix.P_PID, c.pid, 0)

	children.mu.Lock()
	_ = unix.Kill(-c.pid, unix.SIGKILL)
	if lookErr != nil {
		// The kernel does not let the agent look (seccomp, an emulation): the child may still
		// run. Its exit status is now the agent's doing.
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
	// The child has ended, so reap does not wait. The lock is held because from here on
	// the next process may get the same pid.
	s, err := reap(c.pid)
	delete(children.own, c.pid)
	children.mu.Unlock()

	select {
	case children.reaped <- struct{}{}:
	default:
	}
	return s, errors.Join(lookErr, err)
}

// reap waits for the end of a child and takes its exit status.
func reap(pid int) (s waitStatus, err error) {
	for {
		_, err := syscall.Wait4(pid, &s.WaitStatus, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return s, os.NewSyscallError("wait", err)
		}
	}
}

// waitStatus says how a child ended.
type waitStatus struct{ syscall.WaitStatus }

// Success reports whether the child exited with 0.
func (s waitStatus) Success() bool { return s.ExitCode() == 0 }

// ExitCode returns the exit code of the child, or -1 if a signal ended the child.
func (s waitStatus) ExitCode() int { return s.ExitStatus() }

// String names the signal that ended the child.
func (s waitStatus) String() string {
	text := "signal: " + s.Signal().String()
	if s.CoreDump() {
		text += " (core dumped)"
	}
	return text
}

// exited returns the pid of a child that has ended, and leaves the child a zombie. It waits for
// one; with WNOHANG it returns 0 if there is none.
func exited(idType, id, options int) (int, error) {
	// The pid is the first field of a union that unix.Siginfo does not declare: the union
	// follows three int32 and is aligned like a pointer.
	const align = unsafe.Sizeof(uintptr(0))
	const pidOffset = (3*unsafe.Sizeof(int32(0)) + align - 1) / align * align

	var info unix.Siginfo
	for {
		err := unix.Waitid(idType, id, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if !errors.Is(err, unix.EINTR) {
			return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), pidOffset))), err
		}
	}
}

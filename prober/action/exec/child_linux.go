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

// children are the processes that startChild has started and waitChild has not
// reaped yet. It is the one global of this package, because what it mirrors is one
// too: a process has one set of children, and anybody in it can take anybody's exit
// status. So whoever runs ReapOrphans starts processes in no other way.
//
// A pid or process group is signalled only with mu held and the process in own. Its
// leader is then not reaped yet, a zombie at the most, and the kernel gives neither
// number to anybody else.
var children = struct {
	mu  sync.Mutex
	own map[int]*child
	// starting holds those who are between fork and own; suspect is the dead child
	// that the reaper wonders about. See orphan.
	starting *sync.WaitGroup
	suspect  int
	// reaped tells the reaper that one of ours is no longer in its way.
	reaped chan struct{}
}{
	own:      make(map[int]*child),
	starting: new(sync.WaitGroup),
	reaped:   make(chan struct{}, 1),
}

// child is a process of ours.
type child struct{ pid int }

// startChild starts a process as the leader of a group of its own. The group is
// there before it returns: Go sets it in the child and returns after the exec.
//
// Pdeathsig is not set: it is sent when the thread that forked ends, not the
// process, and Go ends threads.
func startChild(path string, argv []string, attr *syscall.ProcAttr) (*child, error) {
	children.mu.Lock()
	starting := children.starting
	starting.Add(1)
	children.mu.Unlock()
	defer starting.Done()

	attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	// Not by package os, which waits for a process in a thread.
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	c := &child{pid: pid}
	claim(c)
	return c, nil
}

// claim enters c as ours. Until then orphan may suspect it, if it is dead already.
func claim(c *child) {
	children.mu.Lock()
	defer children.mu.Unlock()
	children.own[c.pid] = c
	if children.suspect == c.pid {
		children.suspect = 0
	}
}

// over reports whether c has ended, and leaves it a zombie. An error is waitChild's to
// tell, which cannot look either.
func (c *child) over() bool {
	pid, err := exited(unix.P_PID, c.pid, unix.WNOHANG)
	return pid != 0 || err != nil
}

// await waits until c has ended, and reports whether it has; it gives up when the
// stopwatch does. The runtime's poller waits for the pidfd, if there is one.
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

// glance is how often a command is looked at where the kernel has no descriptor of it
// to wait for.
const glance = 10 * time.Millisecond

// watch does what await does, without a descriptor.
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

// killChild kills the group of c and reports whether c was running until then. That
// c then ends is waitChild's to see. What even SIGKILL does not end (a process in
// uninterruptible sleep, or one that has become another user's) makes the attempt
// last: better a late turn than an overlap.
func killChild(c *child) bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	if children.own[c.pid] != c {
		return false
	}
	if pid, err := exited(unix.P_PID, c.pid, unix.WNOHANG); pid != 0 && err == nil {
		return false
	}
	// Errors are of no use: ESRCH is the aim, and for EPERM there is no remedy.
	_ = unix.Kill(-c.pid, unix.SIGKILL)
	// It may have moved to another group.
	_ = unix.Kill(c.pid, unix.SIGKILL)
	return true
}

// waitChild waits for c to end, kills what is left of its group, and reaps c, in
// that order: see children. A background process would otherwise pile up from turn
// to turn, or run into the next one. A kill of a group leaves no gap: a fork that is
// under way in it either is seen by the kill or fails. What has not ended yet takes an
// OS thread until it has.
func waitChild(c *child) (exitState, error) {
	_, lookErr := exited(unix.P_PID, c.pid, 0)

	children.mu.Lock()
	_ = unix.Kill(-c.pid, unix.SIGKILL)
	if lookErr != nil {
		// The kernel does not let us look (seccomp, an emulation): it may still run, and
		// nobody will see it end in time. What it returns now is our doing.
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
	// It has ended, so this does not wait. It is done with the lock held because from
	// here on the next process may get the same pid.
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

// waitStatus is how a child ended.
type waitStatus struct{ syscall.WaitStatus }

// Success reports whether the child exited with 0.
func (s waitStatus) Success() bool { return s.ExitCode() == 0 }

// ExitCode returns what the child exited with, or -1 if a signal ended it.
func (s waitStatus) ExitCode() int { return s.ExitStatus() }

// String names the signal that ended the child.
func (s waitStatus) String() string {
	text := "signal: " + s.Signal().String()
	if s.CoreDump() {
		text += " (core dumped)"
	}
	return text
}

// exited returns the pid of a child that has ended, and leaves it a zombie. It waits
// for one, or with WNOHANG returns 0 if there is none.
func exited(idType, id, options int) (int, error) {
	// The pid is the first field of a union that unix.Siginfo does not spell out: it
	// comes after three int32 and is aligned as a pointer.
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

// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package action

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
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
	own map[int]*os.Process
	// starting holds those who are between fork and own; suspect is the dead child
	// that the reaper wonders about. See orphan.
	starting *sync.WaitGroup
	suspect  int
	// reaped tells the reaper that one of ours is no longer in its way.
	reaped chan struct{}
}{
	own:      make(map[int]*os.Process),
	starting: new(sync.WaitGroup),
	reaped:   make(chan struct{}, 1),
}

// startChild starts a process as the leader of a group of its own. The group is
// there before it returns: Go sets it in the child and returns after the exec.
//
// Pdeathsig is not set: it is sent when the thread that forked ends, not the
// process, and Go ends threads.
func startChild(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	children.mu.Lock()
	starting := children.starting
	starting.Add(1)
	children.mu.Unlock()
	defer starting.Done()

	attr.Sys = &syscall.SysProcAttr{Setpgid: true}
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}

	claim(p)
	return p, nil
}

// claim enters p as ours. Until then orphan may suspect it, if it is dead already.
func claim(p *os.Process) {
	children.mu.Lock()
	defer children.mu.Unlock()
	children.own[p.Pid] = p
	if children.suspect == p.Pid {
		children.suspect = 0
	}
}

// killChild kills the group of p and reports whether p was running until then. That
// p then ends is waitChild's to see. What even SIGKILL does not end (a process in
// uninterruptible sleep, or one that has become another user's) makes the attempt
// last: better a late turn than an overlap.
func killChild(p *os.Process) bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	if children.own[p.Pid] != p {
		return false
	}
	if pid, err := exited(unix.P_PID, p.Pid, unix.WNOHANG); pid != 0 && err == nil {
		return false
	}
	// Errors are of no use: ESRCH is the aim, and for EPERM there is no remedy.
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	// It may have moved to another group.
	_ = unix.Kill(p.Pid, unix.SIGKILL)
	return true
}

// waitChild waits for p to end, kills what is left of its group, and reaps p, in
// that order: see children. A background process would otherwise pile up from turn
// to turn, or run into the next one. A kill of a group leaves no gap: a fork that is
// under way in it either is seen by the kill or fails. It takes an OS thread.
func waitChild(p *os.Process) (*os.ProcessState, error) {
	_, lookErr := exited(unix.P_PID, p.Pid, 0)

	children.mu.Lock()
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	if lookErr != nil {
		// The kernel does not let us look (seccomp, an emulation): it may still run, and
		// nobody will see it end in time. What it returns now is our doing.
		_ = unix.Kill(p.Pid, unix.SIGKILL)
	}
	// It has ended, so this does not wait. It is done with the lock held because from
	// here on the next process may get the same pid.
	state, err := p.Wait()
	delete(children.own, p.Pid)
	children.mu.Unlock()

	select {
	case children.reaped <- struct{}{}:
	default:
	}
	return state, errors.Join(lookErr, err)
}

// glance is how often a command is looked at where the kernel has no descriptor of it
// to wait for.
const glance = 10 * time.Millisecond

// follow takes what a command writes until it ends, or is ended by the deadline or by
// ctx, and reaps it. It is one thread's wait for all of that: cheaper than package
// os's poller, and a thread waits for the end of a command in any case.
func follow(ctx context.Context, child *os.Process, r *os.File, deadline time.Time) (output string, end ended, timedOut bool) {
	var killing sync.WaitGroup
	killing.Add(1)
	kept := context.AfterFunc(ctx, func() {
		defer killing.Done()
		killChild(child)
	})
	w := watch{r: r}
	if child.WithHandle(func(handle uintptr) { w.handle = int32(handle); w.until(child, deadline) }) != nil {
		w.handle = -1
		w.until(child, deadline)
	}
	if !w.ended {
		// The command may have ended in time with nobody there to see it, because the
		// agent was frozen or starved: then its exit status counts.
		timedOut = killChild(child)
	}
	end.state, end.err = waitChild(child)
	if !kept() {
		killing.Wait()
	}
	// Everything in the group is dead: what is in the pipe is read to its end, which
	// comes at once, unless a process that has left the group holds it open.
	w.rest()
	return string(w.output), end, timedOut
}

// watch is what is seen of a command.
type watch struct {
	r      *os.File
	handle int32  // the pidfd, or -1
	output []byte // the first 10 KiB
	closed bool   // there is no more output
	ended  bool
}

// until watches until the command has ended or the deadline has passed.
func (w *watch) until(child *os.Process, deadline time.Time) {
	for !w.ended {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		if w.handle < 0 {
			left = min(left, glance)
			// An error is waitChild's to tell, which cannot look either.
			pid, err := exited(unix.P_PID, child.Pid, unix.WNOHANG)
			w.ended = pid != 0 || err != nil
		}
		if !w.ended {
			w.wait(left)
		}
	}
}

// wait waits for output, which it reads, or the end, or for so long. It says whether
// there was anything.
func (w *watch) wait(d time.Duration) bool {
	fds := [2]unix.PollFd{{Fd: -1, Events: unix.POLLIN}, {Fd: w.handle, Events: unix.POLLIN}}
	if !w.closed {
		fds[0].Fd = int32(w.r.Fd())
	}
	timeout := unix.NsecToTimespec(d.Nanoseconds())
	n, err := unix.Ppoll(fds[:], &timeout, nil)
	if err != nil || n == 0 {
		return errors.Is(err, unix.EINTR) // then nobody knows
	}
	if fds[0].Revents != 0 {
		w.read()
	}
	w.ended = fds[1].Revents != 0
	return true
}

// read reads once, and keeps of it what is of the first 10 KiB.
func (w *watch) read() {
	var buffer [4 << 10]byte
	n, err := w.r.Read(buffer[:])
	w.output = append(w.output, buffer[:min(n, maxOutput-len(w.output))]...)
	w.closed = err != nil
}

// rest reads what is left of the output, and awaits no more than a little while that
// it ends. What is there is read even by an agent that is late.
func (w *watch) rest() {
	w.handle = -1
	for end := time.Now().Add(outputGrace); !w.closed; {
		left := time.Until(end)
		more := w.wait(max(left, 0))
		if left <= 0 && (!more || len(w.output) == maxOutput) {
			return
		}
	}
}

// openNull opens what a command reads that has no input. Package os would offer it to
// its poller, as the writing end of a pipe.
func openNull() (*os.File, error) {
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	return os.NewFile(uintptr(fd), os.DevNull), nil
}

// openPipe returns a pipe for a command to write to. Neither end goes to the poller:
// see follow.
func openPipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
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

// isPath reports whether name is that of the variable that commands are searched in.
func isPath(name string) bool { return name == "PATH" }

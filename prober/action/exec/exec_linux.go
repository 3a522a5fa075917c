// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// locate returns the file to execute. A name with a slash is a path, about which the kernel
// itself reports errors.
func locate(file string, env []string) (string, error) {
	if strings.Contains(file, "/") {
		return file, nil
	}
	return config.LookCommand(file, searchPath(env))
}

// startPiped starts a command without input and returns the pipe of its output. Stdout and stderr
// share the pipe, which keeps their order.
func startPiped(path string, argv, env []string) (c *child, output *os.File, err error) {
	stdin, err := null.open()
	if err != nil {
		return nil, nil, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	// The child has its own copy; while this one is open the pipe does not end.
	defer func() { _ = unix.Close(pipe[1]) }()
	// Only this end: the command's must block.
	err = unix.SetNonblock(pipe[0], true)
	r := os.NewFile(uintptr(pipe[0]), "|0")
	if err == nil {
		err = r.SetReadDeadline(time.Time{}) // fails if the poller did not accept the pipe
	}
	if err == nil {
		w := uintptr(pipe[1])
		c, err = startChild(path, argv, &syscall.ProcAttr{Env: env, Files: []uintptr{stdin, w, w}})
	}
	if err != nil {
		shut(r)
		return nil, nil, err
	}
	return c, r, nil
}

// null is the input of all commands, opened by the first and never closed.
var null nullFile

type nullFile struct {
	mu   sync.Mutex
	file *os.File
}

func (n *nullFile) open() (fd uintptr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		if n.file, err = os.Open(os.DevNull); err != nil {
			return 0, err
		}
	}
	return n.file.Fd(), nil
}

// soon is how long follow waits for the end of the output alone.
const soon = 10 * time.Millisecond

// follow reads the output of a command until the command ends, or the stopwatch or ctx ends it,
// and reaps the command. The runtime's poller waits, and no thread: a thread that is in the kernel
// for long keeps the scheduler awake, which looks at it every few microseconds.
//
// Most commands end soon, and their output with them. So follow first waits for the end of the
// output, and for the end of the command only if the output goes on, or others hold it.
func follow(ctx context.Context, c *child, r *os.File, watch *dial.Stopwatch) (output string, end ended, timedOut bool) {
	var killing sync.WaitGroup
	killing.Add(1)
	unkilled := context.AfterFunc(ctx, func() {
		defer killing.Done()
		killChild(c)
	})
	kept, whole := readSoon(r, watch.Begin())
	var rest chan string
	if !whole {
		rest = make(chan string, 1)
		go func() { rest <- readOutput(r, kept) }()
	}
	over := whole && c.over()
	if !over && !c.await(watch) {
		// The command may have ended in time without the agent seeing that, because the agent
		// was frozen or starved: then the exit status counts.
		timedOut = killChild(c)
	}
	end.exitState, end.err = waitChild(c)
	if !unkilled() {
		killing.Wait()
	}
	if whole {
		return string(kept), end, timedOut
	}
	// Everything in the group is dead: the pipe ends at once, unless a process that has
	// left the group holds it open.
	_ = r.SetReadDeadline(time.Now().Add(outputGrace)) // see startPiped
	return <-rest, end, timedOut
}

// readSoon reads r until deadline, and reports whether it has reached the end.
func readSoon(r *os.File, deadline time.Time) (kept []byte, whole bool) {
	if at := time.Now().Add(soon); at.Before(deadline) {
		deadline = at
	}
	_ = r.SetReadDeadline(deadline) // see startPiped
	kept, err := io.ReadAll(io.LimitReader(r, action.MaxOutput))
	_ = r.SetReadDeadline(time.Time{})
	return kept, err == nil && len(kept) < action.MaxOutput
}

// isPath reports whether name is the name of the variable PATH.
func isPath(name string) bool { return name == "PATH" }

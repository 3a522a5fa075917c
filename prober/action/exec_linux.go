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
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
)

// locate returns what to execute. With a slash it is a path, and the kernel itself says
// what is wrong with one.
func locate(file, pathEnv string) (string, error) {
	if strings.Contains(file, "/") {
		return file, nil
	}
	return config.LookCommand(file, pathEnv)
}

// startPiped starts a command without input and returns where its output comes. One
// pipe for stdout and stderr keeps what is written in the order it was written.
func startPiped(path string, argv, env []string) (c *child, output *os.File, err error) {
	stdin, err := null.open()
	if err != nil {
		return nil, nil, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	// Our end alone: the command's must block.
	_ = unix.SetNonblock(pipe[0], true)
	r := os.NewFile(uintptr(pipe[0]), "|0")
	// The child has its own copy; with ours open the pipe would never end.
	defer unix.Close(pipe[1])
	w := uintptr(pipe[1])
	c, err = startChild(path, argv, &syscall.ProcAttr{Env: env, Files: []uintptr{stdin, w, w}})
	if err != nil {
		shut(r)
		return nil, nil, err
	}
	return c, r, nil
}

// null is what commands read, which have no input: opened by the first, and never
// closed.
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

// follow takes what a command writes until it ends, or is ended by the deadline or by
// ctx, and reaps it. No thread waits meanwhile: the runtime's poller does, for the
// output and for the end. A thread that waits in the kernel is missed by the scheduler,
// which then looks for it every few microseconds.
func follow(ctx context.Context, c *child, r *os.File, deadline time.Time) (output string, end ended, timedOut bool) {
	var killing sync.WaitGroup
	killing.Add(1)
	kept := context.AfterFunc(ctx, func() {
		defer killing.Done()
		killChild(c)
	})
	read := make(chan string, 1)
	go func() { read <- readOutput(r) }()
	if !c.await(deadline) {
		// The command may have ended in time with nobody there to see it, because the
		// agent was frozen or starved: then its exit status counts.
		timedOut = killChild(c)
	}
	end.exitState, end.err = waitChild(c)
	if !kept() {
		killing.Wait()
	}
	// Everything in the group is dead: what is in the pipe is read to its end, which
	// comes at once, unless a process that has left the group holds it open.
	_ = r.SetReadDeadline(time.Now().Add(outputGrace)) // a pipe has deadlines
	return <-read, end, timedOut
}

// isPath reports whether name is that of the variable that commands are searched in.
func isPath(name string) bool { return name == "PATH" }

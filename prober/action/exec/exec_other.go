// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package exec

import (
	"context"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// On systems other than Linux a command is killed alone: processes that it has
// started live on. Production runs on Linux; elsewhere the agent is for development.

// locate returns what to execute.
func locate(file string, env []string) (string, error) {
	return config.LookCommand(file, searchPath(env))
}

// startPiped starts a command without input and returns where its output comes. One
// pipe for stdout and stderr keeps what is written in the order it was written.
func startPiped(path string, argv, env []string) (child *os.Process, output *os.File, err error) {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer shut(stdin)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// The child has its own copy; with ours open the pipe would never end.
	defer shut(w)
	child, err = os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: []*os.File{stdin, w, w}})
	if err != nil {
		shut(r)
		return nil, nil, err
	}
	return child, r, nil
}

// killChild kills p and reports whether it was running until then.
func killChild(p *os.Process) bool { return p.Kill() == nil }

// follow takes what a command writes until it ends, or is ended by the stopwatch or by
// ctx.
func follow(ctx context.Context, child *os.Process, r *os.File, watch *dial.Stopwatch) (output string, end ended, timedOut bool) {
	limited, cancel := watch.Context(ctx, false, nil)
	defer cancel()
	read := make(chan string, 1)
	go func() { read <- readOutput(r, nil) }()
	done := make(chan ended, 1)
	go func() {
		state, err := child.Wait()
		done <- ended{state, err}
	}()

	select {
	case end = <-done:
	case <-limited.Done():
		// It may have ended in time with nobody there to see it: then its exit status
		// counts.
		timedOut = killChild(child)
		end = <-done
	}

	// What is in the pipe is read to its end, unless a process that it has started
	// holds it open.
	if r.SetReadDeadline(time.Now().Add(outputGrace)) != nil {
		// Pipes of Windows have no deadlines; a close ends a read there.
		closer := time.AfterFunc(outputGrace, func() { shut(r) })
		defer closer.Stop()
	}
	return <-read, end, timedOut
}

// isPath reports whether name is that of the variable that commands are searched in.
func isPath(name string) bool {
	return name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH")
}

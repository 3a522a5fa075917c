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

// On systems other than Linux a kill reaches only the command: its child processes live on.
// Production runs on Linux; elsewhere the agent is for development.

// locate returns the file to execute.
func locate(file string, env []string) (string, error) {
	return config.LookCommand(file, searchPath(env))
}

// startPiped starts a command without input and returns the pipe of its output. Stdout and stderr
// share the pipe, which keeps their order.
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
	// The child has its own copy; while this one is open the pipe does not end.
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

// follow reads the output of a command until the command ends, or the stopwatch or ctx ends it.
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
		// The command may have ended in time without the agent seeing that: then the exit
		// status counts.
		timedOut = killChild(child)
		end = <-done
	}

	// The pipe is read to its end, unless a process that the command has started holds it
	// open.
	if r.SetReadDeadline(time.Now().Add(outputGrace)) != nil {
		// Pipes of Windows have no deadlines; a close ends a read there.
		closer := time.AfterFunc(outputGrace, func() { shut(r) })
		defer closer.Stop()
	}
	return <-read, end, timedOut
}

// isPath reports whether name is the name of the variable PATH.
func isPath(name string) bool {
	return name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH")
}

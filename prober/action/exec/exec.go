// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package exec runs commands, as the kubelet does: a process group of its own for each
// attempt, or the target's own container (container.go). It also reaps orphans for an
// agent that is PID 1 (reap_linux.go).
package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// outputGrace is how long output is awaited, twice at most, once the command has
// ended and its group has been killed. Only a process that has left the group can
// still hold the pipe open then, and no attempt waits for such a one.
const outputGrace = 50 * time.Millisecond

// New returns the action that runs a command: no shell, the agent's working
// directory and environment plus the target's variables, no input. An attempt costs
// two file descriptors (the output, the pidfd) for as long as the command runs, and no
// thread; a few descriptors more while it starts.
//
// Argv and environment are made anew for each attempt: that is cheap beside a fork,
// and tens of thousands of probes at rest then hold none of it.
func New(t *config.Target, p *config.Probe) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		if err := ctx.Err(); err != nil {
			return action.Outcome{Reason: action.Other}, err
		}
		return runCommand(ctx, t, p)
	}
}

// ended is how a command ended.
type ended struct {
	exitState
	err error
}

// exitState is what is known of a command that has ended; os.ProcessState has it, too.
type exitState interface {
	Success() bool
	ExitCode() int // below 0 if a signal ended it
	String() string
}

func runCommand(ctx context.Context, t *config.Target, p *config.Probe) (action.Outcome, error) {
	argv, env := t.Command(p.Exec), os.Environ()
	if len(t.Env) > 0 {
		env = t.Environ(env)
	}
	path, err := locate(argv[0], env)
	if err != nil {
		return notStarted(p.Exec, err)
	}
	watch := dial.NewStopwatch(p.Timeout)
	defer watch.Free()
	child, r, err := startPiped(path, argv, env)
	if err != nil {
		return notStarted(p.Exec, err)
	}
	defer shut(r)
	watch.Move()

	output, end, timedOut := follow(ctx, child, r, watch)
	switch {
	case ctx.Err() != nil:
		return action.Outcome{Reason: action.Other}, ctx.Err()
	case end.err != nil:
		err := fmt.Errorf("wait for command %q: %w", p.Exec.Command[0], end.err)
		return action.Outcome{Reason: action.Other, Output: action.Clip(err.Error())}, err
	case timedOut:
		return watch.Judge(tooLong(p.Exec), nil)
	}
	return exitOutcome(end.exitState, output), nil
}

// shut closes a file through which nothing of ours was written, so that there is no
// error to heed.
func shut(f *os.File) { _ = f.Close() }

func exitOutcome(end exitState, output string) action.Outcome {
	switch {
	case end.Success():
		return action.Outcome{Success: true, Output: output}
	case end.ExitCode() >= 0:
		return action.Outcome{Reason: action.ExitCode, Output: output, ExitCode: end.ExitCode()}
	}
	// Killed by a signal, and not by us. Such a command has rarely said anything.
	if output == "" {
		output = end.String()
	}
	outcome := action.Outcome{Reason: action.Signal, Output: output}
	if s, ok := end.(interface{ Signal() syscall.Signal }); ok {
		outcome.ExitCode = 128 + int(s.Signal()) // as a shell says it
	}
	return outcome
}

// readOutput reads r to its end or its deadline, so that the writer never stalls, and
// returns the first 10 KiB, of which kept has been read. It holds no more memory than
// the output needs.
func readOutput(r *os.File, kept []byte) string {
	more, err := io.ReadAll(io.LimitReader(r, int64(action.MaxOutput-len(kept))))
	kept = append(kept, more...)
	switch {
	case err == nil && len(kept) == action.MaxOutput:
		// An error here means what it means there: no more is wanted.
		_, _ = io.Copy(io.Discard, r)
	case errors.Is(err, os.ErrDeadlineExceeded):
		// A deadline that has passed ends a read even if there is something to read, and
		// on a busy machine it may have passed before the first read of all. So look
		// again: what the command has written is there.
		if r.SetReadDeadline(time.Now().Add(outputGrace)) == nil {
			rest, _ := io.ReadAll(io.LimitReader(r, int64(action.MaxOutput-len(kept))))
			kept = append(kept, rest...)
		}
	}
	return string(kept)
}

// notStarted is the outcome of a command that could not be started. That says
// something of the agent or its file system, nothing of the target, so it is an
// error and counts for nothing (rule 11.4).
//
// Texts show the command as the configuration has it: expanded, it may hold
// secrets. For that reason only the innermost error is shown, too; those around it
// name the expanded path.
func notStarted(e *config.Exec, err error) (action.Outcome, error) {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	err = fmt.Errorf("start command %q: %w", e.Command[0], err)
	return action.Outcome{Reason: action.ExecStart, Output: action.Clip(err.Error())}, err
}

// searchPath returns env's PATH: the one that the command will see.
func searchPath(env []string) string {
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && isPath(name) {
			return value
		}
	}
	return ""
}

// Address returns nothing: a command has no address.
func Address(*config.Target, *config.Probe) string { return "" }

// Files returns how many files an attempt has open at most, but for the moment in which
// the command is started: its output and its pidfd, or two connections to Docker.
func Files(*config.Target, *config.Probe) int { return 2 }

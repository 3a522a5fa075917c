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

// outputGrace is how long the agent waits for output, at most twice, once the command has ended
// and its group has been killed. Only a process that has left the group can then hold the pipe
// open, and no attempt waits for such a process.
const outputGrace = 50 * time.Millisecond

// New returns the action that runs a command: no shell, the agent's working directory and
// environment plus the target's variables, no input. While the command runs, an attempt costs two
// file descriptors (the output, the pidfd) and no thread; while the command starts, a few more
// descriptors.
//
// Each attempt makes argv and environment anew: that is cheap beside a fork, and saves memory
// with tens of thousands of probes.
func New(t *config.Target, p *config.Probe) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		if err := ctx.Err(); err != nil {
			return action.Outcome{Reason: action.Other}, err
		}
		return runCommand(ctx, t, p)
	}
}

// ended says how a command ended.
type ended struct {
	exitState
	err error
}

// exitState is the state of a command that has ended; os.ProcessState implements it, too.
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

// shut closes a file to which the agent has written nothing, so that an error does not matter.
func shut(f *os.File) { _ = f.Close() }

func exitOutcome(end exitState, output string) action.Outcome {
	switch {
	case end.Success():
		return action.Outcome{Success: true, Output: output}
	case end.ExitCode() >= 0:
		return action.Outcome{Reason: action.ExitCode, Output: output, ExitCode: end.ExitCode()}
	}
	// A signal that the agent did not send has killed the command, which rarely has output.
	if output == "" {
		output = end.String()
	}
	outcome := action.Outcome{Reason: action.Signal, Output: output}
	if s, ok := end.(interface{ Signal() syscall.Signal }); ok {
		outcome.ExitCode = 128 + int(s.Signal()) // as in a shell
	}
	return outcome
}

// readOutput reads r to its end or its deadline, so that the writer never stalls, and returns the
// first 10 KiB, of which kept has been read already. It uses no more memory than the output
// needs.
func readOutput(r *os.File, kept []byte) string {
	more, err := io.ReadAll(io.LimitReader(r, int64(action.MaxOutput-len(kept))))
	kept = append(kept, more...)
	switch {
	case err == nil && len(kept) == action.MaxOutput:
		// As above, after an error no more output is wanted.
		_, _ = io.Copy(io.Discard, r)
	case errors.Is(err, os.ErrDeadlineExceeded):
		// A passed deadline ends a read even if there is something to read, and on a busy
		// machine the deadline may pass before the first read. So look again: the command's
		// output is there.
		if r.SetReadDeadline(time.Now().Add(outputGrace)) == nil {
			rest, _ := io.ReadAll(io.LimitReader(r, int64(action.MaxOutput-len(kept))))
			kept = append(kept, rest...)
		}
	}
	return string(kept)
}

// notStarted returns the outcome of a command that could not be started: an error, which does not
// count, because the cause is the agent or its file system and not the target (rule 11.4).
//
// Texts show the command as in the configuration, because the expanded command may contain
// secrets. For the same reason only the innermost error is shown: the outer ones name the
// expanded path.
func notStarted(e *config.Exec, err error) (action.Outcome, error) {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	err = fmt.Errorf("start command %q: %w", e.Command[0], err)
	return action.Outcome{Reason: action.ExecStart, Output: action.Clip(err.Error())}, err
}

// searchPath returns env's PATH, which the command will see.
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

// Files returns how many files an attempt has open at most, except while the command starts: its
// output and its pidfd, or two connections to Docker.
func Files(*config.Target, *config.Probe) int { return 2 }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/dial"
)

// Runner runs commands inside the container of a target.
type Runner interface {
	// Exec runs a command, with env added to the container's own, until it ends or ctx
	// does, and returns its exit code. Stdout and stderr go to output, which takes all.
	//
	// An error for which errors.Is(err, context.DeadlineExceeded) says that the command
	// ran out of ctx's time. One that has NotStarted() bool, and true, says that it did
	// not begin. No error but the first says anything of the target.
	Exec(ctx context.Context, target string, command, env []string, output io.Writer) (exitCode int, err error)
}

// NewIn returns the action that runs a command inside t's own container, as a
// kubelet does: in its file system, with its user and environment. Of the target's
// variables it gets all, of the agent's none.
func NewIn(run Runner, t *config.Target, p *config.Probe) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		if err := ctx.Err(); err != nil {
			return action.Outcome{Reason: action.Other}, err
		}
		watch := dial.NewStopwatch(p.Timeout)
		watch.Move()
		limited, cancel := watch.Context(ctx, true, nil)
		defer cancel()
		var output firstBytes
		argv := t.Command(p.Exec)
		code, err := run.Exec(limited, t.Name, argv, t.Environ(nil), &output)
		switch {
		case ctx.Err() != nil:
			return action.Outcome{Reason: action.Other}, ctx.Err()
		case err == nil && code == 0:
			return action.Outcome{Success: true, Output: string(output)}, nil
		case err == nil:
			// Above 128 it was a signal, most likely; what the runtime has is a number.
			return action.Outcome{Reason: action.ExitCode, Output: string(output), ExitCode: code}, nil
		}
		var not interface{ NotStarted() bool }
		begun := !errors.As(err, &not) || !not.NotStarted()
		switch {
		case !begun:
			err = fmt.Errorf("start command %q in the container: %s", p.Exec.Command[0], asWritten(err.Error(), argv, p.Exec.Command))
			return action.Outcome{Reason: action.ExecStart, Output: action.Clip(err.Error())}, err
		case errors.Is(err, context.DeadlineExceeded):
			return watch.Judge(tooLong(p.Exec), nil)
		}
		err = fmt.Errorf("run command %q in the container: %s", p.Exec.Command[0], asWritten(err.Error(), argv, p.Exec.Command))
		return action.Outcome{Reason: action.Other, Output: action.Clip(err.Error())}, err
	}
}

// tooLong is the outcome of a command that took too long.
func tooLong(e *config.Exec) action.Outcome {
	text := fmt.Sprintf("command %q timed out", strings.Join(e.Command, " "))
	return action.Outcome{Reason: action.Timeout, Output: action.Clip(text)}
}

// asWritten undoes in a text what was expanded in a command: it may hold secrets.
func asWritten(text string, expanded, written []string) string {
	for i, arg := range expanded {
		if arg != written[i] && arg != "" {
			text = strings.ReplaceAll(text, arg, written[i])
		}
	}
	return text
}

// firstBytes keeps the first 10 KiB of what is written to it, and takes the rest.
type firstBytes []byte

func (b *firstBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), action.MaxOutput-len(*b))]...)
	return len(p), nil
}

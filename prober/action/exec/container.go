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
	// Exec runs a command, with env added to the container's environment, until the command
	// or ctx ends, and returns the exit code. Stdout and stderr go to output.
	//
	// If errors.Is(err, context.DeadlineExceeded), the command ran out of ctx's time. An
	// error with a method NotStarted() bool that returns true says that the command did not
	// begin. Only the first error says anything about the target.
	Exec(ctx context.Context, target string, command, env []string, output io.Writer) (exitCode int, err error)
}

// NewIn returns the action that runs a command inside t's own container, as a kubelet does: in
// the container's file system, with its user and environment. The command gets all variables of
// the target and none of the agent.
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
			// A code above 128 was most likely a signal, but the runtime reports only the code.
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

// tooLong returns the outcome of a command that took too long.
func tooLong(e *config.Exec) action.Outcome {
	text := fmt.Sprintf("command %q timed out", strings.Join(e.Command, " "))
	return action.Outcome{Reason: action.Timeout, Output: action.Clip(text)}
}

// asWritten replaces expanded parts of a command in a text by their form in the configuration:
// the expansion may contain secrets.
func asWritten(text string, expanded, written []string) string {
	for i, arg := range expanded {
		if arg != written[i] && arg != "" {
			text = strings.ReplaceAll(text, arg, written[i])
		}
	}
	return text
}

// firstBytes is a writer that keeps the first 10 KiB and drops the rest.
type firstBytes []byte

func (b *firstBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), action.MaxOutput-len(*b))]...)
	return len(p), nil
}

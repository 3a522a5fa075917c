// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// runnerFunc is a Runner.
type runnerFunc func(ctx context.Context, target string, command, env []string, output io.Writer) (int, error)

func (f runnerFunc) Exec(ctx context.Context, target string, command, env []string, output io.Writer) (int, error) {
	return f(ctx, target, command, env, output)
}

// notBegun is a runner's error that says that the command has not started.
type notBegun struct {
	text  string
	begun bool
}

func (e notBegun) Error() string    { return e.text }
func (e notBegun) NotStarted() bool { return !e.begun }

// secretTarget has variables that appear in an expanded command.
var secretTarget = &config.Target{
	Name: "app",
	Env:  []config.EnvVar{{Name: "TOKEN", Value: "hunter2"}, {Name: "EMPTY", Value: ""}},
}

// execIn returns an action that runs check $(TOKEN) $(EMPTY) through run.
func execIn(timeout time.Duration, run runnerFunc) action.Func {
	return NewIn(run, secretTarget, &config.Probe{
		Exec:    &config.Exec{Command: []string{"check", "$(TOKEN)", "$(EMPTY)"}},
		Timeout: timeout,
	})
}

// The runner gets the expanded command, the target's two variables, and none of the agent's
// variables.
func TestExecInArguments(t *testing.T) {
	t.Setenv("OF_THE_AGENT", "1")
	var got []any
	actiontest.Attempt(t, execIn(time.Second, func(_ context.Context, target string, command, env []string, _ io.Writer) (int, error) {
		got = []any{target, command, env}
		return 0, nil
	}))
	want := []any{"app", []string{"check", "hunter2", ""}, []string{"TOKEN=hunter2", "EMPTY="}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Exit code 0 is a success. Any other code, even that of a signal, is a failure with reason
// exit_code. The deadline is a failure with reason timeout. Anything else is an error that
// names no secret.
func TestExecInOutcomes(t *testing.T) {
	timedOut := action.Outcome{Reason: action.Timeout, Output: `command "check $(TOKEN) $(EMPTY)" timed out`}
	for _, c := range []struct {
		code    int
		err     error
		want    action.Outcome
		wantErr bool
	}{
		{code: 0, want: action.Outcome{Success: true, Output: "said"}},
		{code: 1, want: action.Outcome{Reason: action.ExitCode, Output: "said", ExitCode: 1}},
		{code: 137, want: action.Outcome{Reason: action.ExitCode, Output: "said", ExitCode: 137}},
		{code: -1, want: action.Outcome{Reason: action.ExitCode, Output: "said", ExitCode: -1}},
		{err: context.DeadlineExceeded, want: timedOut},
		{err: fmt.Errorf("an earlier one runs: %w", context.DeadlineExceeded), want: timedOut},
		{
			err:  notBegun{text: `exec: "hunter2": not found`},
			want: action.Outcome{Reason: action.ExecStart, Output: `start command "check" in the container: exec: "$(TOKEN)": not found`}, wantErr: true,
		},
		{
			err:  fmt.Errorf("create: %w", notBegun{text: "no daemon"}),
			want: action.Outcome{Reason: action.ExecStart, Output: `start command "check" in the container: create: no daemon`}, wantErr: true,
		},
		{
			err:  notBegun{text: "lost hunter2", begun: true},
			want: action.Outcome{Reason: action.Other, Output: `run command "check" in the container: lost $(TOKEN)`}, wantErr: true,
		},
		{
			err:  errors.New("lost"),
			want: action.Outcome{Reason: action.Other, Output: `run command "check" in the container: lost`}, wantErr: true,
		},
	} {
		got, err := execIn(time.Minute, func(_ context.Context, _ string, _, _ []string, output io.Writer) (int, error) {
			io.WriteString(output, "said")
			return c.code, c.err
		})(t.Context())
		if got != c.want || (err != nil) != c.wantErr || err != nil && err.Error() != c.want.Output {
			t.Errorf("%d, %v: got %+v, %v; want %+v", c.code, c.err, got, err, c.want)
		}
	}
}

// At 50 ms the context of the command ends, and the attempt is a timeout.
func TestExecInTimeout(t *testing.T) {
	begin := time.Now()
	got := actiontest.Attempt(t, execIn(50*time.Millisecond, func(ctx context.Context, _ string, _, _ []string, _ io.Writer) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}))
	if took := time.Since(begin); got.Reason != action.Timeout || got.Success || took < 50*time.Millisecond {
		t.Errorf("got %+v after %v, want a timeout", got, took)
	}
}

// An attempt of an agent that stops returns the agent's own error, before the command and
// during it.
func TestExecInStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	f := execIn(time.Minute, func(context.Context, string, []string, []string, io.Writer) (int, error) {
		runs++
		cancel()
		return 0, nil
	})
	for range 2 {
		if got, err := f(ctx); !errors.Is(err, context.Canceled) || got != (action.Outcome{Reason: action.Other}) {
			t.Errorf("got %+v, %v; want the agent's own error", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("ran %d times, want 1", runs)
	}
}

// The agent reads all of 100 KiB and keeps the first 10.
func TestExecInOutput(t *testing.T) {
	got := actiontest.Attempt(t, execIn(time.Minute, func(_ context.Context, _ string, _, _ []string, output io.Writer) (int, error) {
		for i := range 100 {
			if n, err := output.Write([]byte(strings.Repeat(string(rune('a'+i%26)), 1<<10))); n != 1<<10 || err != nil {
				t.Errorf("took %d, %v", n, err)
			}
		}
		return 3, nil
	}))
	if len(got.Output) != 10<<10 || got.Output[0] != 'a' || got.Output[10<<10-1] != 'j' || got.Reason != action.ExitCode {
		t.Errorf("got %d bytes, reason %q", len(got.Output), got.Reason)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// notStartedError says that a command was not started: it says nothing of the target.
type notStartedError struct{ err error }

func (e *notStartedError) Error() string { return e.err.Error() }

// Unwrap is without the deadline: that a command was not started in time is not that
// it ran for too long.
func (e *notStartedError) Unwrap() error {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return nil
	}
	return e.err
}

// NotStarted is how another package tells.
func (e *notStartedError) NotStarted() bool { return true }

func notStarted(err error) error { return &notStartedError{err} }

// Runner returns the source itself.
func (d *Source) Runner() instance.Runner { return d }

// Exec runs a command inside the target's container, with env added to the
// container's own, and returns its exit code. Stdout and stderr go to output, in
// order, as far as the daemon keeps it.
//
// If ctx's deadline passes first, the error is context.DeadlineExceeded. A daemon has
// no way to kill a command. It is killed if the agent sees the very process and may
// kill it; else it goes on running. So that hung commands do not pile up in the
// container, a command is not started while one like it that has timed out still runs:
// that one is awaited, and if it does not end, that is a timeout, too. If it ends, but
// leaves the new one less time than its timeout, a timeout of the new one says nothing.
//
// An error with NotStarted() says that the command did not begin, any other that its
// end is not known: neither says anything of the target.
func (d *Source) Exec(ctx context.Context, target string, command, env []string, output io.Writer) (exitCode int, err error) {
	r, err := d.newRun(target, command)
	if err != nil {
		return 0, notStarted(err)
	}
	waited, err := r.awaitEarlier(ctx)
	if err != nil {
		return 0, err
	}
	if r.id, err = d.client.CreateExec(ctx, r.container, command, env); err != nil {
		return 0, notStarted(err)
	}
	stream, err := d.client.StartExec(ctx, r.id)
	if err != nil {
		// The daemon may start it nevertheless.
		r.remember()
		return 0, notStarted(err)
	}
	defer stream.Close()
	heard := &said{Writer: output}
	err = docker.CopyOutput(heard, stream)
	if err == nil {
		exitCode, err = r.awaitEnd(ctx, heard)
	}
	if err != nil {
		r.remember()
		if ctx.Err() != nil {
			exitCode, err = r.abandon(ctx.Err())
		}
	}
	if waited && errors.Is(err, context.DeadlineExceeded) {
		return 0, errors.New("the command had less time than its timeout, because the agent had waited for an earlier one to end")
	}
	return exitCode, err
}

// run is one run of a command.
type run struct {
	d         *Source
	target    *watched
	command   string // tells it from the target's other commands
	container string
	instance  gate.Instance
	id        string // of the exec
}

// newRun finds where a command is to run.
func (d *Source) newRun(target string, command []string) (*run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.targets[target]
	switch {
	case e == nil || e.view.id == "":
		return nil, errors.New("the container is unknown")
	case e.view.paused:
		return nil, errors.New("the container is paused")
	case e.view.instance.Phase != gate.Running:
		return nil, errors.New("the container does not run")
	}
	return &run{
		d:         d,
		target:    e,
		command:   strings.Join(command, "\x00"),
		container: e.view.id,
		instance:  e.view.instance,
	}, nil
}

// awaitEarlier waits for a command like this one that has timed out and still runs.
func (r *run) awaitEarlier(ctx context.Context) (waited bool, err error) {
	r.d.mu.Lock()
	earlier := r.target.unfinished[r.command]
	r.d.mu.Unlock()
	if earlier == "" {
		return false, nil
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		exec, err := r.d.client.InspectExec(ctx, earlier)
		switch {
		case docker.IsNotFound(err), err == nil && !exec.Running:
			r.forget(earlier)
			return waited, nil
		case err != nil:
			return waited, notStarted(err)
		}
		waited = true
		if pause(ctx, wait); ctx.Err() == nil {
			continue
		}
		if exec.Pid == 0 {
			return waited, notStarted(errors.New("the daemon has not started an earlier command yet"))
		}
		return waited, r.blame(fmt.Errorf("an earlier command still runs: %w", ctx.Err()))
	}
}

// awaitEnd returns the exit code, which may come a little later than the output ends:
// or much later, if the command has closed it.
func (r *run) awaitEnd(ctx context.Context, heard *said) (int, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		exec, err := r.d.client.InspectExec(ctx, r.id)
		if err != nil {
			return 0, err
		}
		if !exec.Running {
			return outcome(exec, heard)
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// outcome is how a command has ended.
func outcome(exec *docker.Exec, heard *said) (int, error) {
	if exec.ExitCode == nil {
		return 0, errors.New("the daemon does not know the exit code")
	}
	code := *exec.ExitCode
	if (code == 126 || code == 127) && exec.Pid == 0 && heard.runtimeRefused() {
		return 0, notStarted(errors.New(docker.Line(heard.String())))
	}
	return code, nil
}

// abandon ends a run that was cut short, within a grace that is its own. It returns
// the exit code if the command has ended all the same, and nobody was there to see it.
func (r *run) abandon(cause error) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.d.execGrace)
	defer cancel()
	exec, err := r.d.client.InspectExec(ctx, r.id)
	switch {
	case err != nil:
		return 0, fmt.Errorf("see whether the command has ended: %v", err) //nolint:errorlint // a deadline here is the daemon's
	case !exec.Running:
		return outcome(exec, &said{})
	}
	r.kill(ctx, exec.Pid)
	if exec.Pid == 0 {
		return 0, notStarted(errors.New("the daemon has not started the command in time"))
	}
	return 0, r.blame(cause)
}

// blame returns cause, a timeout, unless the container was not there all the time: one
// that is frozen, or has gone, does not let a command end.
func (r *run) blame(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.d.execGrace)
	defer cancel()
	c, err := r.d.client.Inspect(ctx, r.container)
	if err != nil {
		return fmt.Errorf("see whether the container runs: %v", err) //nolint:errorlint // a deadline here is the daemon's
	}
	if rank(c.State.Status) < rank("running") || instanceID(c) != r.instance.ID {
		return errors.New("the container was stopped or paused meanwhile")
	}
	return cause
}

// kill kills the command's process if the agent sees it. What is killed is the
// process that had the number when it was looked up, so whether it is the right one
// is asked after that: it is in the container, and the command still runs under it.
func (r *run) kill(ctx context.Context, pid int) {
	if pid <= 1 {
		return
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	if !containerPID(r.d.proc, pid, r.container, false) {
		return
	}
	if exec, err := r.d.client.InspectExec(ctx, r.id); err != nil || !exec.Running || exec.Pid != pid {
		return
	}
	if p.Kill() != nil {
		return // it is not ours to kill: it goes on running, as if it were not seen
	}
	// The next turn shall not find it dying.
	for ; ctx.Err() == nil; pause(ctx, 2*time.Millisecond) {
		if exec, err := r.d.client.InspectExec(ctx, r.id); err == nil && !exec.Running {
			r.forget(r.id)
			return
		}
	}
}

// remember keeps that this run may not have ended.
func (r *run) remember() {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.d.targets[r.target.name] != r.target || r.target.view.instance.ID != r.instance.ID {
		return // with its container's life, it has ended
	}
	if r.target.unfinished == nil {
		r.target.unfinished = make(map[string]string)
	}
	r.target.unfinished[r.command] = r.id
}

// forget undoes remember.
func (r *run) forget(id string) {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.target.unfinished[r.command] == id {
		delete(r.target.unfinished, r.command)
	}
}

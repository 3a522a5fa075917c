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

// notStartedError says that a command was not started, which says nothing about the target.
type notStartedError struct{ err error }

func (e *notStartedError) Error() string { return e.err.Error() }

// Unwrap hides context.DeadlineExceeded: a command that was not started in time has not run
// for too long.
func (e *notStartedError) Unwrap() error {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return nil
	}
	return e.err
}

// NotStarted returns true; other packages recognise the error by this method.
func (e *notStartedError) NotStarted() bool { return true }

func notStarted(err error) error { return &notStartedError{err} }

// Runner returns the source itself.
func (d *Source) Runner() instance.Runner { return d }

// Exec runs a command inside the target's container, with env added to the container's
// environment, and returns its exit code. Stdout and stderr go to output, in order as far as
// the daemon keeps it.
//
// If ctx's deadline passes first, the error is context.DeadlineExceeded. A daemon cannot kill
// a command. The agent kills the command if it sees the process and may kill it; otherwise
// the command goes on running. So that hung commands do not pile up in the container, Exec
// waits for an earlier run of the same command that has timed out. If the earlier run does not
// end, that is a timeout, too. If the earlier run ends but leaves the new one less than its
// timeout, a timeout of the new one says nothing.
//
// An error with NotStarted() says that the command did not begin, any other error that its
// end is unknown: neither says anything about the target.
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
		// The daemon may start the command nevertheless.
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
	command   string // distinguishes the target's commands
	container string
	instance  gate.Instance
	id        string // of the exec
}

// newRun finds the container in which a command is to run.
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

// awaitEarlier waits for an earlier run of this command that has timed out and still runs.
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

// awaitEnd returns the exit code, which may come a little later than the end of the output,
// or much later if the command has closed its output.
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

// outcome returns how a command has ended.
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

// abandon ends a run that was cut short, within execGrace. It returns the exit code if the
// command had already ended.
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

// blame returns cause, a timeout, unless the container was frozen or gone meanwhile: then the
// command could not end.
func (r *run) blame(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.d.execGrace)
	defer cancel()
	c, err := r.d.client.Inspect(ctx, r.container)
	if err != nil {
		return fmt.Errorf("see whether the container runs: %v", err) //nolint:errorlint // a deadline here is the daemon's
	}
	if rank(c.State.Status) < rank("running") || c.Life() != r.instance.ID {
		return errors.New("the container was stopped or paused meanwhile")
	}
	return cause
}

// kill kills the command's process if the agent sees it. kill first opens the process that has
// the PID and then checks that this is the right one: the process is in the container, and the
// command still runs under that PID.
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
		return // the agent may not kill the process, which goes on running
	}
	// The next turn must not find the process dying.
	for ; ctx.Err() == nil; pause(ctx, 2*time.Millisecond) {
		if exec, err := r.d.client.InspectExec(ctx, r.id); err == nil && !exec.Running {
			r.forget(r.id)
			return
		}
	}
}

// remember records that this run may not have ended.
func (r *run) remember() {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.d.targets[r.target.name] != r.target || r.target.view.instance.ID != r.instance.ID {
		return // the run has ended with its container's life
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

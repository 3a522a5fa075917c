// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// dockerNotStartedError says that a command was not started: it says nothing of the target.
type dockerNotStartedError struct{ err error }

func (e *dockerNotStartedError) Error() string { return e.err.Error() }

// Unwrap is without the deadline: that a command was not started in time is not that
// it ran for too long.
func (e *dockerNotStartedError) Unwrap() error {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return nil
	}
	return e.err
}

// NotStarted is how another package tells.
func (e *dockerNotStartedError) NotStarted() bool { return true }

func dockerNotStarted(err error) error { return &dockerNotStartedError{err} }

// dockerExec is what is read of an exec, which is how the daemon calls a command in a
// container.
type dockerExec struct {
	Running  bool
	ExitCode *int
	Pid      int // 0: it has not been started
}

// Exec runs a command inside the target's container, with env added to the
// container's own, and returns its exit code. Stdout and stderr go to output, in
// order, as far as the daemon keeps it.
//
// If ctx's deadline passes first, the error is context.DeadlineExceeded. A daemon has
// no way to kill a command. It is killed if the agent sees the very process and may
// kill it; else it goes on running. So that hung commands do not pile up in the
// container, a command is not started while one like it that has timed out still runs:
// that one is awaited, and if it does not end, that is a timeout, too. If it ends, but
// leaves the new one less than its time, a timeout of the new one says nothing.
//
// An error with NotStarted() says that the command did not begin, any other that its
// end is not known: neither says anything of the target.
func (d *Source) Exec(ctx context.Context, target string, command, env []string, output io.Writer) (exitCode int, err error) {
	run, err := d.begin(target, command)
	if err != nil {
		return 0, dockerNotStarted(err)
	}
	waited, err := run.awaitEarlier(ctx)
	if err != nil {
		return 0, err
	}
	if err := run.create(ctx, command, env); err != nil {
		return 0, dockerNotStarted(err)
	}
	stream, err := run.start(ctx)
	if err != nil {
		// The daemon may start it nevertheless.
		run.remember()
		return 0, dockerNotStarted(err)
	}
	defer stream.Close()
	said := &dockerSaid{Writer: output}
	err = dockerDemux(said, stream)
	if err == nil {
		exitCode, err = run.awaitEnd(ctx, said)
	}
	if err != nil {
		run.remember()
		if ctx.Err() != nil {
			exitCode, err = run.abandon(ctx.Err())
		}
	}
	if waited && errors.Is(err, context.DeadlineExceeded) {
		return 0, errors.New("the command had less than its time, because an earlier one was awaited")
	}
	return exitCode, err
}

// dockerRun is one run of a command.
type dockerRun struct {
	d         *Source
	target    *dockerTarget
	command   string // tells it from the target's other commands
	container string
	instance  gate.Instance
	id        string // of the exec
}

// begin finds where a command is to run.
func (d *Source) begin(target string, command []string) (*dockerRun, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.targets[target]
	switch {
	case e == nil || e.view.id == "":
		return nil, errors.New("no container is known")
	case e.view.paused:
		return nil, errors.New("the container is paused")
	case e.view.instance.Phase != gate.Running:
		return nil, errors.New("the container does not run")
	}
	return &dockerRun{
		d:         d,
		target:    e,
		command:   strings.Join(command, "\x00"),
		container: e.view.id,
		instance:  e.view.instance,
	}, nil
}

// awaitEarlier waits for a command like this one that has timed out and still runs.
func (r *dockerRun) awaitEarlier(ctx context.Context) (waited bool, err error) {
	r.d.mu.Lock()
	earlier := r.target.unfinished[r.command]
	r.d.mu.Unlock()
	if earlier == "" {
		return false, nil
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		exec, err := r.d.inspectExec(ctx, earlier)
		switch {
		case dockerLacks(err), err == nil && !exec.Running:
			r.forget(earlier)
			return waited, nil
		case err != nil:
			return waited, dockerNotStarted(err)
		}
		waited = true
		if dockerPause(ctx, wait); ctx.Err() == nil {
			continue
		}
		if exec.Pid == 0 {
			return waited, dockerNotStarted(errors.New("the daemon has not started an earlier one yet"))
		}
		return waited, r.blame(fmt.Errorf("an earlier one still runs: %w", ctx.Err()))
	}
}

// create makes the exec.
func (r *dockerRun) create(ctx context.Context, command, env []string) error {
	var created struct {
		ID string `json:"Id"`
	}
	err := r.d.client.call(ctx, http.MethodPost, r.d.client.versioned("/containers/"+r.container+"/exec"), map[string]any{
		"AttachStdout": true,
		"AttachStderr": true,
		"Cmd":          command,
		"Env":          env,
	}, &created)
	if err == nil && created.ID == "" {
		err = errors.New("the answer has no ID")
	}
	if err != nil {
		return fmt.Errorf("create the exec: %w", err)
	}
	r.id = created.ID
	return nil
}

// start starts it and returns where its output comes.
func (r *dockerRun) start(ctx context.Context) (io.ReadCloser, error) {
	stream, err := r.d.client.open(ctx, http.MethodPost, r.d.client.versioned("/exec/"+r.id+"/start"),
		map[string]bool{"Detach": false, "Tty": false})
	if err != nil {
		return nil, fmt.Errorf("start the exec: %w", err)
	}
	return stream, nil
}

// awaitEnd returns the exit code, which may come a little later than the output ends:
// or much later, if the command has closed it.
func (r *dockerRun) awaitEnd(ctx context.Context, said *dockerSaid) (int, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		exec, err := r.d.inspectExec(ctx, r.id)
		if err != nil {
			return 0, err
		}
		if !exec.Running {
			return exec.end(said)
		}
		if dockerPause(ctx, wait); ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// end is how a command has ended.
func (exec *dockerExec) end(said *dockerSaid) (int, error) {
	if exec.ExitCode == nil {
		return 0, errors.New("the daemon does not know the exit code")
	}
	code := *exec.ExitCode
	if (code == 126 || code == 127) && exec.Pid == 0 && said.runtimeRefused() {
		return 0, dockerNotStarted(errors.New(dockerLine(said.String())))
	}
	return code, nil
}

// abandon ends a run that was cut short, within a grace that is its own. It returns
// the exit code if the command has ended all the same, and nobody was there to see it.
func (r *dockerRun) abandon(cause error) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.d.execGrace)
	defer cancel()
	exec, err := r.d.inspectExec(ctx, r.id)
	switch {
	case err != nil:
		return 0, fmt.Errorf("see whether the command has ended: %v", err) //nolint:errorlint // a deadline here is the daemon's
	case !exec.Running:
		return exec.end(&dockerSaid{})
	}
	r.kill(ctx, exec.Pid)
	if exec.Pid == 0 {
		return 0, dockerNotStarted(errors.New("the daemon has not started the command in time"))
	}
	return 0, r.blame(cause)
}

// blame returns cause, a timeout, unless the container was not there all the time: one
// that is frozen, or has gone, does not let a command end.
func (r *dockerRun) blame(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.d.execGrace)
	defer cancel()
	c, err := r.d.inspect(ctx, r.container)
	if err != nil {
		return fmt.Errorf("see whether the container runs: %v", err) //nolint:errorlint // a deadline here is the daemon's
	}
	if dockerRank(c.State.Status) < dockerRank("running") || c.instanceID() != r.instance.ID {
		return errors.New("the container was stopped or paused meanwhile")
	}
	return cause
}

// kill kills the command's process if the agent sees it. What is killed is the
// process that had the number when it was looked up, so whether it is the right one
// is asked after that: it is in the container, and the command still runs under it.
func (r *dockerRun) kill(ctx context.Context, pid int) {
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
	if exec, err := r.d.inspectExec(ctx, r.id); err != nil || !exec.Running || exec.Pid != pid {
		return
	}
	if p.Kill() != nil {
		return // it is not ours to kill: it goes on running, as if it were not seen
	}
	// The next turn shall not find it dying.
	for ; ctx.Err() == nil; dockerPause(ctx, 2*time.Millisecond) {
		if exec, err := r.d.inspectExec(ctx, r.id); err == nil && !exec.Running {
			r.forget(r.id)
			return
		}
	}
}

// remember keeps that this run may not have ended.
func (r *dockerRun) remember() {
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
func (r *dockerRun) forget(id string) {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.target.unfinished[r.command] == id {
		delete(r.target.unfinished, r.command)
	}
}

func (d *Source) inspectExec(ctx context.Context, id string) (*dockerExec, error) {
	exec := new(dockerExec)
	if err := d.client.call(ctx, http.MethodGet, d.client.versioned("/exec/"+id+"/json"), nil, exec); err != nil {
		return nil, fmt.Errorf("inspect the exec: %w", err)
	}
	return exec, nil
}

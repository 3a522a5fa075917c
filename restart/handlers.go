// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/exec"
	"github.com/prober-exporter/prober_exporter/restart/systemd"
)

// This file has the handlers.

// handlers holds every handler, by its name in the configuration.
var handlers = map[string]handler{
	"signal": {
		does: func(q *request) string {
			return fmt.Sprintf("send %s to the process, and SIGKILL after %v", q.target.Restart.Signal.StopSignal, q.grace)
		},
		act: signalProcess,
	},
	"docker": {
		does: func(q *request) string {
			return fmt.Sprintf("ask the Docker Engine for a restart, with a timeout of %v", q.grace)
		},
		act: restartContainer,
	},
	"systemd": {
		does: func(q *request) string { return "ask systemd for a restart of " + q.target.Restart.Systemd.Unit },
		act:  restartUnit,
	},
	"exec": {
		does: func(q *request) string { return fmt.Sprintf("run the command %q", commandLine(q)) },
		act:  runCommand,
	},
}

// restartUnit restarts the unit of a request. systemd goes on with a restart that it has begun,
// whether anybody waits or not.
func restartUnit(ctx context.Context, q *request) (string, error) {
	unit := q.target.Restart.Systemd.Unit
	ctx, cancel := context.WithTimeout(ctx, q.longest)
	defer cancel()
	if err := q.begin(); err != nil {
		return "", err
	}
	switch err := systemd.TryRestart(ctx, unit); {
	case errors.Is(err, systemd.ErrNotRunning):
		return "", stale(err.Error())
	case err != nil:
		return "", err
	}
	return "systemd has restarted " + unit, nil
}

// commandLine returns the command of a request as the file has it.
func commandLine(q *request) string { return strings.Join(q.target.Restart.Exec.Command, " ") }

// runCommand runs the command of a request, in the way of an exec probe. A command that takes
// too long is killed, and so is its process group. When the agent stops, the command may linger,
// and is then left to itself: half a restart is a stop.
func runCommand(ctx context.Context, q *request) (string, error) {
	if err := q.begin(); err != nil {
		return "", err
	}
	run := exec.New(q.target, &config.Probe{Exec: q.target.Restart.Exec, Timeout: q.longest})
	type ended struct {
		action.Outcome
		err error
	}
	done := make(chan ended, 1)
	go func() {
		outcome, err := run(context.WithoutCancel(ctx))
		done <- ended{outcome, err}
	}()
	lingering, cancel := linger(ctx, q.linger)
	defer cancel()
	select {
	case end := <-done:
		said := strings.Join(strings.Fields(end.Output), " ")
		switch {
		case end.err != nil:
			return "", end.err
		case end.Success:
			return strings.TrimSpace("the command has ended: " + said), nil
		case end.Reason == action.ExitCode:
			return "", fmt.Errorf("the command has ended with exit code %d: %s", end.ExitCode, said)
		}
		return "", fmt.Errorf("the command failed: %s: %s", end.Reason, said)
	case <-lingering.Done():
		return "", errors.New("the agent is stopping, and leaves the command to itself")
	}
}

// linger returns a context that ends so long after ctx, for what must not be cut short.
func linger(ctx context.Context, long time.Duration) (context.Context, context.CancelFunc) {
	lingering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(long)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-lingering.Done():
		}
	})
	return lingering, func() {
		stop()
		cancel()
	}
}

const (
	// askTime bounds the questions to the Docker Engine before a restart.
	askTime = 10 * time.Second
	// startTries is how often the Engine is asked to finish a restart of which it has done the
	// first half, and startWait the time between two tries.
	startTries = 3
	startWait  = time.Second
)

// restartContainer asks the Docker Engine for a restart of the container of a request. An Engine
// that has got the request goes on whether anybody waits or not.
func restartContainer(ctx context.Context, q *request) (string, error) {
	life, _, _ := strings.Cut(q.instance, "/") // without the mark of a declared restart
	id, ok := docker.OfLife(life)
	if !ok {
		return "", stale("the instance is no container")
	}
	client := docker.New(q.target.Instance.Socket)
	asking, answered := context.WithTimeout(ctx, askTime)
	defer answered()
	if err := client.Negotiate(asking); err != nil {
		return "", fmt.Errorf("%w: %s", err, docker.Hint(err))
	}
	switch c, err := client.Inspect(asking, id); {
	case docker.IsNotFound(err):
		return "", stale("the container is gone")
	case err != nil:
		return "", err
	case c.Life() != life:
		return "", stale("the container has been restarted")
	case c.State.Status != "running":
		return "", stale("the container is " + docker.Line(cmp.Or(c.State.Status, "in an unknown state")))
	}
	if err := q.begin(); err != nil {
		return "", err
	}
	lingering, cancel := linger(ctx, q.linger)
	defer cancel()
	bounded, cancelBound := context.WithTimeout(lingering, q.longest)
	defer cancelBound()
	err := client.Restart(bounded, id, q.grace)
	for try := 1; err != nil && try < startTries && halfDone(bounded, client, id, life, err); try++ {
		err = client.Restart(bounded, id, q.grace)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, hintAfter(ctx))
	}
	return "the Docker Engine has restarted the container", nil
}

// halfDone waits a moment and reports whether the Engine has stopped the container for this
// restart, and could not start it again. Nobody else would start a container that was stopped.
func halfDone(ctx context.Context, client *docker.Client, id, life string, err error) bool {
	if no := (*docker.Error)(nil); !errors.As(err, &no) {
		return false // the Engine has not answered, and may still be at work
	}
	timer := time.NewTimer(startWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	c, err := client.Inspect(ctx, id)
	return err == nil && c.Life() == life && (c.State.Status == "exited" || c.State.Status == "stopped")
}

// hintAfter says what a restart that failed may have left behind.
func hintAfter(ctx context.Context) string {
	if ctx.Err() != nil {
		return "the agent is stopping, and leaves the restart to the Engine"
	}
	return "look whether the container runs"
}

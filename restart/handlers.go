// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/exec"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
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
// whether anybody waits or not. The process of the instance must be one of the unit's. (That of a
// container is not: it belongs to a unit of the Engine's.)
func restartUnit(ctx context.Context, q *request) (string, error) {
	return restartUnitBy(ctx, q, systemd.TryRestart)
}

// tryRestart is systemd.TryRestart, or a test's.
type tryRestart func(ctx context.Context, unit string, pid int, begin func() error) error

// restartUnitBy is restartUnit with a systemd that a test may play.
func restartUnitBy(ctx context.Context, q *request, try tryRestart) (string, error) {
	unit, pid, begun := q.target.Restart.Systemd.Unit, 0, false
	if q.target.Instance.Source == config.SourceProcess {
		who, ok := proc.OfLife(q.instance)
		if !ok {
			return "", stale("the instance is no process")
		}
		pid = who.PID
	}
	err := try(ctx, unit, pid, func() error {
		err := beginAt(ctx, q)
		begun = err == nil
		return err
	})
	switch {
	case errors.Is(err, systemd.ErrNothingDone):
		return "", stale(err.Error())
	case err != nil && !begun && ctx.Err() != nil:
		return "", stale(context.Cause(ctx).Error())
	case err != nil:
		return "", err
	}
	return "systemd has restarted " + unit, nil
}

// beginAt begins an act of a handler that does not look at the instance itself. The source of a
// container learns of changes only afterwards, so the container is inspected.
func beginAt(ctx context.Context, q *request) error {
	if q.target.Instance.Source == config.SourceDocker {
		if _, err := inspect(ctx, docker.New(q.target.Instance.Socket), q); err != nil {
			return err
		}
	}
	return q.begin()
}

// commandLine returns the command of a request as the file has it.
func commandLine(q *request) string { return strings.Join(q.target.Restart.Exec.Command, " ") }

// runCommand runs the command of a request, in the way of an exec probe. A command that takes
// too long is killed, and so is its process group. When the agent stops, the command may linger,
// and is then left to itself: half a restart is a stop.
func runCommand(ctx context.Context, q *request) (string, error) {
	if err := beginAt(ctx, q); err != nil {
		return "", err
	}
	run := exec.New(q.target, &config.Probe{Exec: q.target.Restart.Exec, Timeout: q.longest})
	type ended struct {
		action.Outcome
		err error
	}
	done := make(chan ended, 1)
	// Nobody waits for this goroutine once the agent stops: it waits for the command, which is not
	// killed and may take up to q.longest. The goroutine touches nothing but done.
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

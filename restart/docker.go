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

	"github.com/prober-exporter/prober_exporter/docker"
)

// This file restarts containers.

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
	client := docker.New(q.target.Instance.Socket)
	c, err := inspect(ctx, client, q)
	if err != nil {
		return "", err
	}
	if err := q.begin(); err != nil {
		return "", err
	}
	lingering, cancel := linger(ctx, q.linger)
	defer cancel()
	bounded, cancelBound := context.WithTimeout(lingering, q.longest)
	defer cancelBound()
	err = client.Restart(bounded, c.ID, q.grace)
	for try := 1; err != nil && try < startTries && halfDone(bounded, client, c, err); try++ {
		err = client.Restart(bounded, c.ID, q.grace)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, hintAfter(ctx))
	}
	return "the Docker Engine has restarted the container", nil
}

// inspect returns the container of a request. The error is a stale if the container does not run, or
// not in that life.
func inspect(ctx context.Context, client *docker.Client, q *request) (*docker.Container, error) {
	life, _, _ := strings.Cut(q.instance, "/") // without the mark of a declared restart
	id, ok := docker.OfLife(life)
	if !ok {
		return nil, stale("the instance is no container")
	}
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := client.Negotiate(bounded); err != nil {
		if ctx.Err() != nil {
			return nil, shutdown
		}
		return nil, fmt.Errorf("%w: %s", err, docker.Hint(err))
	}
	switch c, err := client.Inspect(bounded, id); {
	case err != nil && ctx.Err() != nil:
		return nil, shutdown
	case docker.IsNotFound(err):
		return nil, stale("the container is gone")
	case err != nil:
		return nil, err
	case c.Life() != life:
		return nil, stale("the container has been restarted")
	case c.State.Status != "running":
		return nil, stale("the container is " + docker.Line(cmp.Or(c.State.Status, "in an unknown state")))
	default:
		return c, nil
	}
}

// halfDone waits a moment and reports whether the Engine has stopped the container for this
// restart, and could not start it again. Nobody else would start a container that was stopped.
func halfDone(ctx context.Context, client *docker.Client, was *docker.Container, err error) bool {
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
	c, err := client.Inspect(ctx, was.ID)
	return err == nil && c.Life() == was.Life() && (c.State.Status == "exited" || c.State.Status == "stopped")
}

// hintAfter says what a restart that failed may have left behind.
func hintAfter(ctx context.Context) string {
	if ctx.Err() != nil {
		return "the agent is stopping, and leaves the restart to the Engine"
	}
	return "look whether the container runs"
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
)

// maxLabelled is how many containers with the same label the source inspects.
const maxLabelled = 16

// finding is the result of a look at a target: a container, or trouble, or both.
type finding struct {
	container *docker.Container
	trouble   trouble
	text      string // of the trouble
	pid       int    // of the container's first process, in the agent's own namespace
}

// find looks for the container of a target.
func (d *Source) find(ctx context.Context, e *watched) (finding, error) {
	var found finding
	var err error
	switch {
	case e.container != "":
		found, err = d.findByName(ctx, strings.TrimPrefix(e.container, "/"))
	case e.label.Name != "":
		found, err = d.findByLabel(ctx, e.label.Name+"="+e.label.Value)
	default:
		found = finding{trouble: nothingToLookAt, text: "neither a container nor a label is configured"}
	}
	if c := found.container; c != nil && c.State.Status == "running" && containerPID(d.proc, c.State.Pid, c.ID, true) {
		found.pid = c.State.Pid
	}
	return found, err
}

// findByName finds the container with that name or, if there is none, the only container
// whose ID has that prefix. The daemon applies this rule.
func (d *Source) findByName(ctx context.Context, name string) (finding, error) {
	c, err := d.client.Inspect(ctx, name)
	switch {
	case docker.IsNotFound(err), err == nil && !c.Is(name):
		return finding{trouble: noContainer, text: fmt.Sprintf("there is no container %q", name)}, nil
	case err != nil:
		return finding{}, err
	}
	return finding{container: c}, nil
}

// findByLabel finds the container that has a label. While one container replaces another, both
// have the label: findByLabel takes the newest that runs or, if none runs, the one that ran
// last.
func (d *Source) findByLabel(ctx context.Context, label string) (finding, error) {
	listed, err := d.client.List(ctx, label)
	if err != nil {
		return finding{}, err
	}
	slices.SortStableFunc(listed, func(a, b docker.Listed) int {
		return cmp.Or(rank(b.State)-rank(a.State), cmp.Compare(b.Created, a.Created))
	})

	var best *docker.Container
	var running int
	for _, l := range listed[:min(len(listed), maxLabelled)] {
		c, err := d.client.Inspect(ctx, l.ID)
		if docker.IsNotFound(err) {
			continue // the container has gone since
		}
		if err != nil {
			return finding{}, err
		}
		if c.State.Status == "running" {
			running++
		}
		if best == nil || cmp.Or(rank(c.State.Status)-rank(best.State.Status), c.StartedAt.Compare(best.StartedAt)) > 0 {
			best = c
		}
	}
	switch {
	case best == nil:
		return finding{trouble: noContainer, text: fmt.Sprintf("there is no container with label %q", label)}, nil
	case running > 1:
		return finding{
			container: best,
			trouble:   manyContainers,
			text:      fmt.Sprintf("%d containers with label %q run: the newest is taken", running, label),
		}, nil
	}
	return finding{container: best}, nil
}

// rank orders states, from a container that runs to one that is gone.
func rank(status string) int {
	switch status {
	case "running", "stopping":
		return 3
	case "paused":
		return 2
	case "restarting":
		return 1
	}
	return 0
}

// view returns the target's view after the finding. The caller holds Source.mu.
func (f *finding) view(e *watched) view {
	v := e.view
	v.message = f.text
	if f.trouble == answerUnusable {
		return v // the last view stays
	}
	v.paused, v.pid = false, f.pid
	if f.container == nil {
		if v.instance.ID != "" {
			// A container of that name may come.
			v.instance.Phase, v.instance.Final = gate.Terminated, false
		}
		v.end = e.end
		return v
	}
	c := f.container
	if v.id != c.ID {
		v.id, e.byHand, e.oom, e.heard = c.ID, false, false, false
		e.forgetStop()
	}
	if c.StartedAt.After(e.stopping) {
		e.forgetStop()
	}
	e.stopSignal, e.stopTimeout = c.Config.StopSignal, c.Config.StopTimeout
	v.message = cmp.Or(v.message, docker.Line(c.State.Error))
	life := gate.Instance{ID: c.Life(), StartedAt: c.StartedAt}
	switch c.State.Status {
	case "running", "stopping":
		life.Phase = gate.Running
	case "paused":
		// A frozen process neither answers nor fails: a gap in the view (rule 4.26).
		life.Phase, v.paused = gate.PhaseUnknown, true
	case "restarting":
		// The daemon calls the container running, but its process has ended.
		life.Phase = gate.Waiting
		v.message = cmp.Or(v.message, "waiting for its restart by the daemon")
		e.end = ending{true, c.State.ExitCode, c.State.OOMKilled || e.oom}
	case "exited", "stopped", "dead", "removing":
		life.Phase, life.Final = gate.Terminated, final(c, e.byHand)
		e.end = ending{true, c.State.ExitCode, c.State.OOMKilled || e.oom}
	case "created", "configured", "initialized":
		// The container has no life yet, so the last life stays.
		life.ID, life.StartedAt, life.Phase = v.instance.ID, v.instance.StartedAt, gate.Waiting
	default:
		life.Phase = gate.PhaseUnknown
		v.message = cmp.Or(v.message, fmt.Sprintf("the daemon reports the unknown status %.20q", c.State.Status))
	}
	v.instance, v.end = life, e.end
	return v
}

// final reports whether the daemon will not restart an ended container by itself. A container
// that was stopped by hand under a policy that restarts it is not final: whoever stopped it
// will start it.
func final(c *docker.Container, byHand bool) bool {
	switch policy := c.HostConfig.RestartPolicy; policy.Name {
	case "always", "unless-stopped":
		return false
	case "on-failure":
		spent := policy.MaximumRetryCount > 0 && c.RestartCount >= policy.MaximumRetryCount
		return !byHand && (c.State.ExitCode == 0 || spent)
	}
	return true
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// maxLabelled is how many containers of one label are inspected.
const maxLabelled = 16

// minIDPrefix is how many digits of an ID count as one. A name such as db or cafe is
// made of digits, too: with fewer, the container of somebody else could stand in for
// one that is away.
const minIDPrefix = 8

// dockerContainer is what is read of an inspection.
type dockerContainer struct {
	ID    string `json:"Id"`
	Name  string
	State struct {
		Status    string
		OOMKilled bool
		Pid       int
		ExitCode  int
		Error     string
		StartedAt string
	}
	RestartCount int
	HostConfig   struct {
		RestartPolicy struct {
			Name              string
			MaximumRetryCount int
		}
	}

	startedAt time.Time // State.StartedAt
}

// dockerListed is what is read of a line in a list of containers.
type dockerListed struct {
	ID      string `json:"Id"`
	State   string
	Created int64
}

// dockerFinding is what a look at a target has brought: a container, or trouble, or both.
type dockerFinding struct {
	container *dockerContainer
	trouble   dockerTrouble
	text      string // of the trouble
	pid       int    // of the container's first process, in the agent's own namespace
}

// find looks for the container of a target.
func (d *Source) find(ctx context.Context, e *dockerTarget) (dockerFinding, error) {
	var found dockerFinding
	var err error
	switch {
	case e.container != "":
		found, err = d.findByName(ctx, strings.TrimPrefix(e.container, "/"))
	case e.label.Name != "":
		found, err = d.findByLabel(ctx, e.label.Name+"="+e.label.Value)
	default:
		found = dockerFinding{trouble: nothingToLookAt, text: "neither a container nor a label is configured"}
	}
	if c := found.container; c != nil && c.State.Status == "running" && containerPID(d.proc, c.State.Pid, c.ID, true) {
		found.pid = c.State.Pid
	}
	return found, err
}

// findByName finds the container of that name or, if there is none, the only one
// whose ID begins so: that is the daemon's own rule, and its answer.
func (d *Source) findByName(ctx context.Context, name string) (dockerFinding, error) {
	c, err := d.inspect(ctx, name)
	switch {
	case dockerLacks(err), err == nil && !c.is(name):
		return dockerFinding{trouble: noContainer, text: fmt.Sprintf("there is no container %q", name)}, nil
	case err != nil:
		return dockerFinding{}, err
	}
	return dockerFinding{container: c}, nil
}

// is reports whether a container is meant by that name or beginning of an ID.
func (c *dockerContainer) is(name string) bool {
	return strings.TrimPrefix(c.Name, "/") == name || isIDPrefix(name) && strings.HasPrefix(c.ID, name)
}

// isIDPrefix reports whether a name may be meant as the beginning of an ID.
func isIDPrefix(name string) bool {
	return len(name) >= minIDPrefix && strings.Trim(name, "0123456789abcdef") == ""
}

// findByLabel finds the container that has a label. While one takes the place of
// another, both have it: the one that runs is taken, the newest of them, and else the
// one that ran last.
func (d *Source) findByLabel(ctx context.Context, label string) (dockerFinding, error) {
	var listed []dockerListed
	path := "/containers/json" + dockerFilters(map[string][]string{"label": {label}}) + "&all=1"
	if err := d.client.call(ctx, http.MethodGet, d.client.versioned(path), nil, &listed); err != nil {
		return dockerFinding{}, fmt.Errorf("list the containers with label %q: %w", label, err)
	}
	slices.SortStableFunc(listed, func(a, b dockerListed) int {
		return cmp.Or(dockerRank(b.State)-dockerRank(a.State), cmp.Compare(b.Created, a.Created))
	})

	var best *dockerContainer
	var running int
	for _, l := range listed[:min(len(listed), maxLabelled)] {
		c, err := d.inspect(ctx, l.ID)
		if dockerLacks(err) {
			continue // it has gone since
		}
		if err != nil {
			return dockerFinding{}, err
		}
		if c.State.Status == "running" {
			running++
		}
		if best == nil || cmp.Or(dockerRank(c.State.Status)-dockerRank(best.State.Status), c.startedAt.Compare(best.startedAt)) > 0 {
			best = c
		}
	}
	switch {
	case best == nil:
		return dockerFinding{trouble: noContainer, text: fmt.Sprintf("there is no container with label %q", label)}, nil
	case running > 1:
		return dockerFinding{
			container: best,
			trouble:   manyContainers,
			text:      fmt.Sprintf("%d containers with label %q run: the newest is taken", running, label),
		}, nil
	}
	return dockerFinding{container: best}, nil
}

// dockerRank orders states by how much of an instance there is.
func dockerRank(status string) int {
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

// inspect asks for one container, by name or ID.
func (d *Source) inspect(ctx context.Context, name string) (*dockerContainer, error) {
	c := new(dockerContainer)
	path := "/containers/" + url.PathEscape(name) + "/json"
	err := d.client.call(ctx, http.MethodGet, d.client.versioned(path), nil, c)
	if err == nil {
		c.startedAt, err = time.Parse(time.RFC3339Nano, c.State.StartedAt)
		c.startedAt = c.startedAt.UTC()
	}
	if err == nil && len(c.ID) < minIDPrefix {
		err = fmt.Errorf("the answer has the ID %q", c.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect container %q: %w", name, err)
	}
	return c, nil
}

// instanceID tells one life of a container from the next: a restart keeps its ID.
func (c *dockerContainer) instanceID() string {
	return c.ID[:min(12, len(c.ID))] + "@" + c.startedAt.Format(time.RFC3339Nano)
}

// view is what a finding makes of what was known of the target, with Source.mu held.
func (f *dockerFinding) view(e *dockerTarget) dockerView {
	v := e.view
	v.message = f.text
	if f.trouble == answerUnusable {
		return v // the last view stays
	}
	v.paused, v.pid = false, f.pid
	if f.container == nil {
		if v.instance.ID != "" {
			// One of that name may come.
			v.instance.Phase, v.instance.Final = gate.Terminated, false
		}
		v.end = e.end
		return v
	}
	c := f.container
	if v.id != c.ID {
		v.id, e.byHand, e.oom = c.ID, false, false
	}
	v.message = cmp.Or(v.message, dockerLine(c.State.Error))
	life := gate.Instance{ID: c.instanceID(), StartedAt: c.startedAt}
	switch c.State.Status {
	case "running", "stopping":
		life.Phase = gate.Running
	case "paused":
		// A frozen process neither answers nor fails: a gap in the view (rule 4.26).
		life.Phase, v.paused = gate.PhaseUnknown, true
	case "restarting":
		// The daemon says that it runs; what ran before has ended.
		life.Phase = gate.Waiting
		v.message = cmp.Or(v.message, "waiting for its restart by the daemon")
		e.end = dockerEnd{true, c.State.ExitCode, c.State.OOMKilled || e.oom}
	case "exited", "stopped", "dead", "removing":
		life.Phase, life.Final = gate.Terminated, c.final(e.byHand)
		e.end = dockerEnd{true, c.State.ExitCode, c.State.OOMKilled || e.oom}
	case "created", "configured", "initialized":
		// It has no life yet, so the one before is still the last.
		life.ID, life.StartedAt, life.Phase = v.instance.ID, v.instance.StartedAt, gate.Waiting
	default:
		life.Phase = gate.PhaseUnknown
		v.message = cmp.Or(v.message, fmt.Sprintf("the daemon says %.20q of it, which is not known here", c.State.Status))
	}
	v.instance, v.end = life, e.end
	return v
}

// final reports whether the daemon will not start an ended container again by itself.
// One that was stopped by hand under a policy that starts it again is not meant to be
// gone: whoever stopped it will start it.
func (c *dockerContainer) final(byHand bool) bool {
	switch policy := c.HostConfig.RestartPolicy; policy.Name {
	case "always", "unless-stopped":
		return false
	case "on-failure":
		spent := policy.MaximumRetryCount > 0 && c.RestartCount >= policy.MaximumRetryCount
		return !byHand && (c.State.ExitCode == 0 || spent)
	}
	return true
}

// dockerLine makes a line of the daemon's one that a page can show.
func dockerLine(text string) string {
	const longest = 256
	text = strings.ToValidUTF8(text[:min(len(text), longest)], "")
	return strings.Join(strings.Fields(text), " ")
}

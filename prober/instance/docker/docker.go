// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package docker is the source that asks a Docker Engine about containers.
package docker

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Source asks a Docker Engine, or a Podman service, about the containers of targets. One
// Source serves every target of its socket.
//
// Events say when to look; only inspections count. Events may be lost with a connection,
// and a daemon may hang without closing one, so a Source inspects every container after
// each connect and at intervals.
type Source struct {
	instance.Defaults

	client *docker.Client
	log    *slog.Logger

	refresh            time.Duration // between two looks at everything
	minRetry, maxRetry time.Duration // between two attempts to connect
	execGrace          time.Duration // for the end of an unfinished command

	proc string // the path of the process file system

	// wake says that a target may be dirty.
	wake chan struct{}

	mu      sync.Mutex
	targets map[string]*watched
	// connected says that the event stream is open and that the source has looked at every
	// target since it opened. unusable counts the targets for which the daemon has no
	// usable answer.
	connected bool
	unusable  int
}

// watched is one target. Source.mu guards its fields, except for those that say what to
// watch: they never change.
type watched struct {
	name      string
	container string       // name or ID prefix
	label     config.Label // instead of container

	dirty   bool // something may have happened to it
	view    view
	trouble trouble

	// What only events tell of the container in view, because an inspection may come too
	// late: that somebody stopped it on purpose, that memory ran out in its current life,
	// and how its last life ended.
	byHand, oom bool
	end         ending
	stop

	// Of the container in view, as its image or its user wrote them.
	stopSignal  string
	stopTimeout *int // in seconds

	// unfinished has the commands that were still running at their timeout: the ID of the
	// exec by command.
	unfinished map[string]string
}

// view is what the source knows of a target.
type view struct {
	id       string // of the container, in full
	instance gate.Instance
	end      ending
	paused   bool
	pid      int
	message  string
}

// ending is how the last life ended. The zero value means unknown.
type ending struct {
	known    bool
	exitCode int
	oom      bool
}

// trouble is why the source does not see a target clearly.
type trouble uint8

const (
	seenClearly     trouble = iota
	noContainer             // no container has that name or label
	manyContainers          // more than one container runs
	answerUnusable          // the daemon answers, but not usably
	nothingToLookAt         // the configuration names no container
)

// New returns the source behind a socket, given as a path. Run connects.
func New(socket string, log *slog.Logger) *Source {
	return &Source{
		client:    docker.New(socket),
		log:       log,
		refresh:   15 * time.Second,
		minRetry:  250 * time.Millisecond,
		maxRetry:  15 * time.Second,
		execGrace: time.Second,
		proc:      "/proc",
		wake:      make(chan struct{}, 1),
		targets:   make(map[string]*watched),
	}
}

// Watch begins or continues to watch the container of t.Instance.
func (d *Source) Watch(t *config.Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.targets[t.Name]
	if e != nil && e.container == t.Instance.Container && e.label == t.Instance.Label {
		return
	}
	d.drop(e)
	d.targets[t.Name] = &watched{
		name:      t.Name,
		container: t.Instance.Container,
		label:     t.Instance.Label,
		dirty:     true,
	}
	d.wakeSession()
}

// Forget ends the watch of a target.
func (d *Source) Forget(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(d.targets[target])
	delete(d.targets, target)
}

// drop removes a target from the count of unusable answers. The caller holds mu.
func (d *Source) drop(e *watched) {
	if e != nil && e.trouble == answerUnusable {
		d.unusable--
	}
}

// Instance returns the life of the container that the source saw last.
func (d *Source) Instance(target string) gate.Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.targets[target]; e != nil {
		return e.view.instance
	}
	return gate.Instance{}
}

// Describe returns what else the daemon knows of the container.
func (d *Source) Describe(target string) instance.Details {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.targets[target]
	if e == nil {
		return instance.Details{}
	}
	v := e.view
	details := instance.Details{PID: v.pid, OOMKilled: v.end.oom, Paused: v.paused, Message: v.message, Stopping: e.current(time.Now())}
	if v.end.known {
		exitCode := v.end.exitCode
		details.ExitCode = &exitCode
	}
	return details
}

// Up reports whether the event stream is open and the daemon has an answer for every target,
// be it that the target has no container.
func (d *Source) Up() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.connected && d.unusable == 0
}

// Sees reports whether the event stream is open, the daemon has a usable answer for the target,
// and the source knows who has asked the container to end.
func (d *Source) Sees(target string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.targets[target]
	return d.connected && e != nil && e.trouble != answerUnusable && (e.heard || e.view.id == "")
}

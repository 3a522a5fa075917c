// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package docker is the source that sees containers with the eyes of a Docker Engine.
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

// Source sees the containers behind targets with the eyes of a Docker Engine, or of a
// Podman service. One serves every target of its socket.
//
// Its events say when to look, and an inspection is the truth. Since events may be
// lost with a connection, and a daemon may hang without closing one, it looks at
// everything after each connect and once in a while.
type Source struct {
	instance.Defaults

	client *docker.Client
	log    *slog.Logger

	refresh            time.Duration // between two looks at everything
	minRetry, maxRetry time.Duration // between two attempts to connect
	execGrace          time.Duration // what the end of an unfinished command may take

	proc string // where the process file system is

	// wake says that a target may be dirty.
	wake chan struct{}

	mu      sync.Mutex
	targets map[string]*watched
	// connected says that the events are heard and that every target has been looked
	// at since they are; unusable counts the targets for which the daemon has no usable
	// answer.
	connected bool
	unusable  int
}

// watched is one target. Its fields are guarded by Source.mu, except for those
// that tell what is watched: they never change.
type watched struct {
	name      string
	container string       // name or ID prefix
	label     config.Label // instead of it

	dirty   bool // something may have happened to it
	view    view
	trouble trouble

	// What events tell of the container in view, and an inspection does not, or no
	// longer if it comes late: that somebody stopped it on purpose, that memory ran out
	// in this life of it, and how the last one ended.
	byHand, oom bool
	end         ending

	// unfinished are commands that were still running at their timeout: the ID of the
	// exec by the command.
	unfinished map[string]string
}

// view is what is known of a target.
type view struct {
	id       string // of the container, in full
	instance gate.Instance
	end      ending
	paused   bool
	pid      int
	message  string
}

// ending is how the last life that ended did so. The zero value: nobody knows.
type ending struct {
	known    bool
	exitCode int
	oom      bool
}

// trouble is why a target is not seen clearly.
type trouble uint8

const (
	seenClearly     trouble = iota
	noContainer             // there is none by that name or label
	manyContainers          // more than one runs
	answerUnusable          // the daemon is there, and gives no usable answer
	nothingToLookAt         // the configuration names no container
)

// New returns the source behind a socket, given as a path. It connects when it
// runs.
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

// Watch begins to watch the container of t.Instance, or goes on.
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

// Forget ends that.
func (d *Source) Forget(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(d.targets[target])
	delete(d.targets, target)
}

// drop keeps the count of unusable answers, with mu held.
func (d *Source) drop(e *watched) {
	if e != nil && e.trouble == answerUnusable {
		d.unusable--
	}
}

// Instance returns the container's life that was seen last.
func (d *Source) Instance(target string) gate.Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.targets[target]; e != nil {
		return e.view.instance
	}
	return gate.Instance{}
}

// Describe returns what the daemon knows of it beyond that.
func (d *Source) Describe(target string) instance.Details {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.targets[target]
	if e == nil {
		return instance.Details{}
	}
	v := e.view
	details := instance.Details{PID: v.pid, OOMKilled: v.end.oom, Paused: v.paused, Message: v.message}
	if v.end.known {
		exitCode := v.end.exitCode
		details.ExitCode = &exitCode
	}
	return details
}

// Up reports whether the daemon is heard, and has an answer for every target. That a
// target has no container is such an answer.
func (d *Source) Up() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.connected && d.unusable == 0
}

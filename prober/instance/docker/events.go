// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"strconv"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/docker"
)

// eventNames are the events that may change a view, by Docker's and by Podman's names. The
// daemon leaves out the others, of which each exec probe makes three.
var eventNames = []string{
	"create", "start", "restart", "die", "died", "oom", "kill", "stop", "pause", "unpause",
	"rename", "update", "destroy", "remove", "cleanup", "init",
}

// readEvents reads events until the stream ends, and returns why.
func (d *Source) readEvents(stream *docker.EventStream) error {
	defer stream.Close()
	for {
		event, err := stream.Next()
		if err != nil {
			return err
		}
		d.mark(event)
	}
}

// mark marks the targets that an event is about.
func (d *Source) mark(ev *docker.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.targets {
		if e.about(ev) {
			e.note(ev)
			d.wakeSession()
		}
	}
}

// about reports whether an event may change the view of the target.
func (e *watched) about(ev *docker.Event) bool {
	id, attributes := ev.Actor.ID, ev.Actor.Attributes
	if id == "" {
		return false
	}
	if id == e.view.id {
		return true
	}
	if e.container == "" {
		value, ok := attributes[e.label.Name]
		return ok && value == e.label.Value
	}
	return attributes["name"] == e.container ||
		strings.TrimPrefix(attributes["oldName"], "/") == e.container ||
		docker.IsIDPrefix(e.container) && strings.HasPrefix(id, e.container)
}

// note keeps what an inspection, which may come too late, does not tell.
func (e *watched) note(ev *docker.Event) {
	e.dirty = true
	if ev.Actor.ID != e.view.id {
		return
	}
	switch ev.Action {
	case "oom":
		e.oom = true
	case "kill", "stop":
		e.byHand = true
		e.noteStop(ev, time.Now())
	case "start":
		e.oom, e.byHand = false, false
		e.forgetStop()
	case "die", "died":
		code, err := strconv.Atoi(ev.Actor.Attributes["exitCode"])
		if err == nil {
			e.end = ending{known: true, exitCode: code, oom: e.oom}
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxDockerEvent is how long an event may be: it holds all labels of a container.
const maxDockerEvent = 1 << 20

// dockerEvents are those that may change a view, by Docker's names and by Podman's.
// The daemon leaves out the rest: each exec probe makes three of them.
var dockerEvents = []string{
	"create", "start", "restart", "die", "died", "oom", "kill", "stop", "pause", "unpause",
	"rename", "update", "destroy", "remove", "cleanup", "init",
}

// dockerEvent is what is read of an event.
type dockerEvent struct {
	Type   string
	Action string
	Actor  struct {
		ID         string
		Attributes map[string]string
	}
}

// events opens the stream of events. Its beginning has the timeout of a call, the
// stream has none.
func (c *dockerClient) events(ctx context.Context) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	slow := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	path := "/events" + dockerFilters(map[string][]string{"type": {"container"}, "event": dockerEvents})
	stream, err := c.open(ctx, http.MethodGet, c.versioned(path), nil)
	if !slow.Stop() || err != nil {
		if err == nil {
			stream.Close()
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, fmt.Errorf("open the events: %w", err)
	}
	return &dockerStream{ReadCloser: stream, cancel: cancel}, nil
}

// dockerStream is a stream with the context that it lives by.
type dockerStream struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close ends both.
func (c *dockerStream) Close() error {
	c.cancel(nil)
	return c.ReadCloser.Close()
}

// readEvents hears events until their stream ends, and says why it did.
func (d *Source) readEvents(stream io.ReadCloser) error {
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxDockerEvent)
	for lines.Scan() {
		var ev dockerEvent
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			return fmt.Errorf("decode an event: %w", err)
		}
		d.hear(&ev)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the events: %w", err)
	}
	return errors.New("the daemon has ended the events")
}

// hear marks the targets that an event is about.
func (d *Source) hear(ev *dockerEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.targets {
		if e.about(ev) {
			e.hear(ev)
			d.poke()
		}
	}
}

// about reports whether an event may change what is seen of the target.
func (e *dockerTarget) about(ev *dockerEvent) bool {
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
		isIDPrefix(e.container) && strings.HasPrefix(id, e.container)
}

// hear takes from an event what an inspection may come too late for, or never tells.
func (e *dockerTarget) hear(ev *dockerEvent) {
	e.dirty = true
	if ev.Actor.ID != e.view.id {
		return
	}
	switch ev.Action {
	case "oom":
		e.oom = true
	case "kill", "stop":
		e.byHand = true
	case "start":
		e.oom, e.byHand = false, false
	case "die", "died":
		code, err := strconv.Atoi(ev.Actor.Attributes["exitCode"])
		if err == nil {
			e.end = dockerEnd{known: true, exitCode: code, oom: e.oom}
		}
	}
}

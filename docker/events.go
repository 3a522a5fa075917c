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
	"time"
)

// MaxEvent bounds the length of an event, which holds all labels of its container.
const MaxEvent = 1 << 20

// Event is what a client reads of an event.
type Event struct {
	Type   string
	Action string
	Actor  struct {
		ID         string
		Attributes map[string]string
	}
}

// EventStream is a stream of events. It is not safe for concurrent use.
type EventStream struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	lines  *bufio.Scanner
}

// Events opens the stream of the events of containers that have one of these names. The
// timeout of a call bounds the beginning of the stream. The stream itself ends with ctx.
func (c *Client) Events(ctx context.Context, names []string) (*EventStream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	slow := time.AfterFunc(c.Timeout, func() { cancel(context.DeadlineExceeded) })
	path := "/events" + filters(map[string][]string{"type": {"container"}, "event": names})
	body, err := c.open(ctx, http.MethodGet, c.versioned(path), nil)
	if !slow.Stop() || err != nil {
		if err == nil {
			body.Close()
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, fmt.Errorf("open the events: %w", err)
	}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, MaxEvent)
	return &EventStream{body: body, cancel: cancel, lines: lines}, nil
}

// Next waits for the next event. The error says why the stream has ended.
func (s *EventStream) Next() (*Event, error) {
	for s.lines.Scan() {
		if len(s.lines.Bytes()) == 0 {
			continue
		}
		event := new(Event)
		if err := json.Unmarshal(s.lines.Bytes(), event); err != nil {
			return nil, fmt.Errorf("decode an event: %w", err)
		}
		return event, nil
	}
	if err := s.lines.Err(); err != nil {
		return nil, fmt.Errorf("read the events: %w", err)
	}
	return nil, errors.New("the daemon has ended the events")
}

// Close ends the stream and its connection.
func (s *EventStream) Close() {
	s.cancel(nil)
	s.body.Close()
}

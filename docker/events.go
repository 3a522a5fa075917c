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
	Type     string
	Action   string
	TimeNano int64 `json:"timeNano"` // since 1970; 0 if unknown
	Actor    struct {
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

// PastEvents returns the events of a container that have one of these names and came since that
// time, oldest first, as far as the daemon remembers. A Docker Engine remembers its last 256
// events.
func (c *Client) PastEvents(ctx context.Context, id string, names []string, since time.Time) ([]*Event, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	now := time.Now()
	if since.After(now) {
		since = now
	}
	// Podman may go on after until, but for the last parameter.
	path := "/events" + filters(map[string][]string{"type": {"container"}, "container": {id}, "event": names}) +
		"&since=" + unix(since) + "&until=" + unix(now) + "&stream=false"
	body, err := c.open(ctx, http.MethodGet, c.versioned(path), nil)
	if err != nil {
		return nil, fmt.Errorf("ask for past events: %w", err)
	}
	defer body.Close()
	limited := &io.LimitedReader{R: body, N: MaxAnswer}
	stream := &EventStream{lines: bufio.NewScanner(limited)}
	stream.lines.Buffer(nil, MaxEvent)
	var past []*Event
	for {
		switch event, err := stream.Next(); {
		case errors.Is(err, errEnded) && limited.N > 0:
			return past, nil
		case err != nil:
			return nil, fmt.Errorf("ask for past events: %w", err)
		default:
			past = append(past, event)
		}
	}
}

// unix writes a time as the daemon's queries have it: seconds and nanoseconds.
func unix(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }

// errEnded is the error of a stream whose daemon has told all.
var errEnded = errors.New("the daemon has ended the events")

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
	return nil, errEnded
}

// Close ends the stream and its connection.
func (s *EventStream) Close() {
	s.cancel(nil)
	s.body.Close()
}

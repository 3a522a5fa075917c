// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MinIDPrefix is the least length of an ID prefix. Names such as db or cafe consist of
// hexadecimal digits, too: a shorter prefix could match a container that nobody means.
const MinIDPrefix = 8

// Container is what a client reads of the inspection of a container.
type Container struct {
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
	Config       struct {
		StopSignal  string // empty: SIGTERM
		StopTimeout *int   // in seconds, negative: no limit; nil: the daemon's default
	}
	HostConfig struct {
		RestartPolicy struct {
			Name              string
			MaximumRetryCount int
		}
	}

	// StartedAt is State.StartedAt; Inspect sets it.
	StartedAt time.Time `json:"-"`
}

// Listed is what a client reads of a container in a list.
type Listed struct {
	ID      string `json:"Id"`
	State   string
	Created int64
}

// Inspect asks for one container, by its name, its ID or the beginning of its ID.
func (c *Client) Inspect(ctx context.Context, name string) (*Container, error) {
	found := new(Container)
	path := "/containers/" + url.PathEscape(name) + "/json"
	err := c.call(ctx, http.MethodGet, c.versioned(path), nil, found)
	if err == nil {
		found.StartedAt, err = time.Parse(time.RFC3339Nano, found.State.StartedAt)
		found.StartedAt = found.StartedAt.UTC()
	}
	if err == nil && len(found.ID) < MinIDPrefix {
		err = fmt.Errorf("the answer has the ID %q", found.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect container %q: %w", name, err)
	}
	return found, nil
}

// Life returns the ID of the container's present or last life: a restart keeps the container's
// own ID.
func (c *Container) Life() string {
	return c.ID[:min(shortID, len(c.ID))] + lifeMark + c.StartedAt.Format(time.RFC3339Nano)
}

// OfLife returns the beginning of the ID of the container that has that life.
func OfLife(life string) (id string, ok bool) {
	id, _, ok = strings.Cut(life, lifeMark)
	return id, ok && IsIDPrefix(id)
}

const (
	shortID  = 12
	lifeMark = "@"
)

// Restart stops a container, waits for its end, at most for grace, which the daemon counts in
// whole seconds, and starts the container again. A daemon that has got the request goes on
// whether the caller waits or not. Restart would start a container that does not run.
func (c *Client) Restart(ctx context.Context, id string, grace time.Duration) error {
	seconds := int64((grace + time.Second - 1) / time.Second)
	path := "/containers/" + url.PathEscape(id) + "/restart?t=" + strconv.FormatInt(seconds, 10)
	answer, err := c.open(ctx, http.MethodPost, c.versioned(path), nil)
	if err != nil {
		return fmt.Errorf("restart container %q: %w", id, err)
	}
	answer.Close()
	return nil
}

// List lists the containers that have a label, given as name=value, running or not.
func (c *Client) List(ctx context.Context, label string) ([]Listed, error) {
	var listed []Listed
	path := "/containers/json" + filters(map[string][]string{"label": {label}}) + "&all=1"
	if err := c.call(ctx, http.MethodGet, c.versioned(path), nil, &listed); err != nil {
		return nil, fmt.Errorf("list the containers with label %q: %w", label, err)
	}
	return listed, nil
}

// Is reports whether a container has that name or ID prefix.
func (c *Container) Is(name string) bool {
	return strings.TrimPrefix(c.Name, "/") == name || IsIDPrefix(name) && strings.HasPrefix(c.ID, name)
}

// IsIDPrefix reports whether a name may be an ID prefix.
func IsIDPrefix(name string) bool {
	return len(name) >= MinIDPrefix && strings.Trim(name, "0123456789abcdef") == ""
}

// filters encodes the daemon's filters as a query.
func filters(by map[string][]string) string {
	encoded, err := json.Marshal(by)
	if err != nil { // strings always encode
		return ""
	}
	return "?" + url.Values{"filters": {string(encoded)}}.Encode()
}

// Line turns a text of the daemon into one line for a log or a page.
func Line(text string) string {
	const longest = 256
	text = strings.ToValidUTF8(text[:min(len(text), longest)], "")
	return strings.Join(strings.Fields(text), " ")
}

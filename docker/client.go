// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package docker is a client of the API of a Docker Engine, or of a Podman service, on a
// socket of this machine.
package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// newestMinor is the newest minor version of the API, 1.x, that this client knows. The calls
// that it uses have not changed since 1.25.
const newestMinor = 44

const (
	// MaxAnswer bounds how many bytes of an answer are read.
	MaxAnswer = 4 << 20
	// maxError bounds the text of an error.
	maxError = 4 << 10
)

// Client talks to a daemon. Every call has a connection of its own: on a local socket a
// connection costs next to nothing, and none is ever stale. Methods may be called concurrently.
type Client struct {
	// Timeout bounds each call, and the beginning of each stream. Timeout must not change once
	// the client is in use.
	Timeout time.Duration

	socket string
	http   *http.Client

	// prefix is the beginning of all paths, with the negotiated version.
	prefix atomic.Pointer[string]
}

// New returns a client of the daemon behind a socket, given as a path. New does not connect.
func New(socket string) *Client {
	var dialer net.Dialer
	return &Client{
		Timeout: 5 * time.Second,
		socket:  socket,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return dialer.DialContext(ctx, "unix", socket)
				},
				DisableKeepAlives:      true,
				DisableCompression:     true,
				MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Socket returns the path of the daemon's socket.
func (c *Client) Socket() string { return c.socket }

// Error is an answer whose status is not a success.
type Error struct {
	Status  int
	Message string // from the daemon; empty if it sent none
}

func (e *Error) Error() string {
	return fmt.Sprintf("status %d: %s", e.Status, cmp.Or(e.Message, http.StatusText(e.Status)))
}

// IsNotFound reports whether the daemon says that there is no such container or exec.
func IsNotFound(err error) bool {
	no, ok := errors.AsType[*Error](err)
	return ok && no.Status == http.StatusNotFound
}

// Negotiate chooses the version of the API: the newest that both sides know, or the daemon's
// oldest if that is newer.
func (c *Client) Negotiate(ctx context.Context) error {
	var version struct {
		APIVersion    string `json:"ApiVersion"`
		MinAPIVersion string
	}
	if err := c.call(ctx, http.MethodGet, "/version", nil, &version); err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	newest, err := apiMinor(version.APIVersion)
	if err != nil {
		return err
	}
	oldest := 0
	if version.MinAPIVersion != "" {
		if oldest, err = apiMinor(version.MinAPIVersion); err != nil {
			return err
		}
	}
	prefix := "/v1." + strconv.Itoa(max(min(newestMinor, newest), oldest))
	c.prefix.Store(&prefix)
	return nil
}

// apiMinor returns x of an API version 1.x.
func apiMinor(version string) (int, error) {
	rest, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.ParseUint(rest, 10, 16)
	if !ok || err != nil {
		return 0, fmt.Errorf("the daemon's API version is %.20q, not 1.x", version)
	}
	return int(n), nil
}

// versioned returns a path with the negotiated version.
func (c *Client) versioned(path string) string {
	if prefix := c.prefix.Load(); prefix != nil {
		return *prefix + path
	}
	return path
}

// Ping reports whether the daemon answers.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.call(ctx, http.MethodGet, "/_ping", nil, nil); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// call makes one call within the client's timeout. The answer's JSON goes to answer,
// unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	stream, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	if answer == nil {
		return nil
	}
	limited := &io.LimitedReader{R: stream, N: MaxAnswer}
	if err := json.NewDecoder(limited).Decode(answer); err != nil {
		if limited.N == 0 {
			return fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
		}
		return fmt.Errorf("decode the answer: %w", err)
	}
	return nil
}

// open makes a call and returns its answer as a stream, which ends with ctx.
func (c *Client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, content)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		// The outer error repeats the long encoded path.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var no struct{ Message string }
	// Without a message the status must do.
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxError)).Decode(&no)
	return nil, &Error{Status: resp.StatusCode, Message: strings.TrimSpace(no.Message)}
}

// Hint says what to do about a daemon that is out of reach.
func Hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "start the daemon, and mount its socket into the agent's container if it runs in one"
	case errors.Is(err, fs.ErrPermission):
		return "run the agent as a user or with a group that may write to the socket"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the daemon; if it was started anew, the directory of the socket has to be mounted, not the socket"
	case errors.Is(err, context.DeadlineExceeded):
		return "the daemon accepts and does not answer: it is starting, overloaded or stuck"
	}
	return "look at the daemon's log"
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

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

// dockerMinor is the newest minor version of the API, 1.x, that this client knows.
// What it uses is the same since 1.25.
const dockerMinor = 44

// The most that is read of an answer, and of the text of an error.
const (
	maxDockerAnswer = 4 << 20
	maxDockerError  = 4 << 10
)

// dockerClient speaks with a daemon. Every call is a connection of its own: on a
// socket of this machine that costs next to nothing, and none is ever stale or left
// behind.
type dockerClient struct {
	socket  string
	http    *http.Client
	timeout time.Duration // of a call

	// prefix is the negotiated version, as paths begin with it.
	prefix atomic.Pointer[string]
}

func newDockerClient(socket string) *dockerClient {
	var dialer net.Dialer
	return &dockerClient{
		socket:  socket,
		timeout: 5 * time.Second,
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

// dockerError is an answer that says no.
type dockerError struct {
	status  int
	message string
}

func (e *dockerError) Error() string {
	return fmt.Sprintf("status %d: %s", e.status, cmp.Or(e.message, http.StatusText(e.status)))
}

// dockerLacks reports whether the daemon says that there is no such thing.
func dockerLacks(err error) bool {
	no, ok := errors.AsType[*dockerError](err)
	return ok && no.status == http.StatusNotFound
}

// negotiate settles the version of the API: the newest that both sides know, or the
// daemon's oldest if that is newer.
func (c *dockerClient) negotiate(ctx context.Context) error {
	var version struct {
		APIVersion    string `json:"ApiVersion"`
		MinAPIVersion string
	}
	if err := c.call(ctx, http.MethodGet, "/version", nil, &version); err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	newest, err := dockerAPIMinor(version.APIVersion)
	if err != nil {
		return err
	}
	oldest := 0
	if version.MinAPIVersion != "" {
		if oldest, err = dockerAPIMinor(version.MinAPIVersion); err != nil {
			return err
		}
	}
	prefix := "/v1." + strconv.Itoa(max(min(dockerMinor, newest), oldest))
	c.prefix.Store(&prefix)
	return nil
}

// dockerAPIMinor returns x of an API version 1.x.
func dockerAPIMinor(version string) (int, error) {
	rest, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.ParseUint(rest, 10, 16)
	if !ok || err != nil {
		return 0, fmt.Errorf("the daemon's API version is %.20q, not 1.x", version)
	}
	return int(n), nil
}

// versioned returns a path with the negotiated version.
func (c *dockerClient) versioned(path string) string {
	if prefix := c.prefix.Load(); prefix != nil {
		return *prefix + path
	}
	return path
}

// ping reports whether the daemon answers.
func (c *dockerClient) ping(ctx context.Context) error {
	if err := c.call(ctx, http.MethodGet, "/_ping", nil, nil); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// call makes one call within the client's timeout. The answer's JSON goes to answer,
// unless that is nil.
func (c *dockerClient) call(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stream, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	if answer == nil {
		return nil
	}
	limited := &io.LimitedReader{R: stream, N: maxDockerAnswer}
	if err := json.NewDecoder(limited).Decode(answer); err != nil {
		if limited.N == 0 {
			return fmt.Errorf("the answer is longer than %d bytes", maxDockerAnswer)
		}
		return fmt.Errorf("decode the answer: %w", err)
	}
	return nil
}

// open makes a call and returns its answer as a stream, which ends with ctx.
func (c *dockerClient) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
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
		// The outer error repeats the path, with all that is encoded in it.
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
	// Without a message the status has to do.
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxDockerError)).Decode(&no)
	return nil, &dockerError{status: resp.StatusCode, message: strings.TrimSpace(no.Message)}
}

// dockerFilters encodes a filter of the daemon's for a query.
func dockerFilters(by map[string][]string) string {
	encoded, err := json.Marshal(by)
	if err != nil { // strings always encode
		return ""
	}
	return "?" + url.Values{"filters": {string(encoded)}}.Encode()
}

// dockerHint says what to do about a daemon that is out of reach.
func dockerHint(err error) string {
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

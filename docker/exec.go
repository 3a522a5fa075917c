// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Exec is what a client reads of an exec, the daemon's word for a command in a container.
type Exec struct {
	Running  bool
	ExitCode *int // nil: the command has not ended, or nobody knows its code
	Pid      int  // 0: the command has not been started
}

// CreateExec makes an exec of a command in a container, with env added to the container's
// own environment, and returns its ID.
func (c *Client) CreateExec(ctx context.Context, container string, command, env []string) (id string, err error) {
	var created struct {
		ID string `json:"Id"`
	}
	err = c.call(ctx, http.MethodPost, c.versioned("/containers/"+url.PathEscape(container)+"/exec"), map[string]any{
		"AttachStdout": true,
		"AttachStderr": true,
		"Cmd":          command,
		"Env":          env,
	}, &created)
	if err == nil && created.ID == "" {
		err = errors.New("the answer has no ID")
	}
	if err != nil {
		return "", fmt.Errorf("create the exec: %w", err)
	}
	return created.ID, nil
}

// StartExec starts an exec and returns the stream of its output, which CopyOutput reads.
// With an error, the daemon may have started the command nevertheless.
func (c *Client) StartExec(ctx context.Context, id string) (io.ReadCloser, error) {
	stream, err := c.open(ctx, http.MethodPost, c.versioned("/exec/"+url.PathEscape(id)+"/start"),
		map[string]bool{"Detach": false, "Tty": false})
	if err != nil {
		return nil, fmt.Errorf("start the exec: %w", err)
	}
	return stream, nil
}

// InspectExec asks for the state of an exec.
func (c *Client) InspectExec(ctx context.Context, id string) (*Exec, error) {
	exec := new(Exec)
	if err := c.call(ctx, http.MethodGet, c.versioned("/exec/"+url.PathEscape(id)+"/json"), nil, exec); err != nil {
		return nil, fmt.Errorf("inspect the exec: %w", err)
	}
	return exec, nil
}

// CopyOutput copies the stream of an exec to output until it ends. The stream is made of
// frames, each with a header of eight bytes: its origin and its length.
func CopyOutput(output io.Writer, stream io.Reader) error {
	const daemon = 3 // after stdin, stdout and stderr: an error of the daemon
	var header [8]byte
	for {
		_, err := io.ReadFull(stream, header[:])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read the output: %w", err)
		case header[0] > daemon || header[1]|header[2]|header[3] != 0:
			return errors.New("read the output: not a stream of frames")
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		if header[0] == daemon {
			text, err := io.ReadAll(io.LimitReader(stream, min(size, maxError)))
			if err != nil {
				return fmt.Errorf("read the output: %w", err)
			}
			return fmt.Errorf("the daemon says: %s", Line(string(text)))
		}
		if _, err := io.CopyN(output, stream, size); err != nil {
			return fmt.Errorf("read the output: %w", err)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// backlogPause is the time between two tries to connect to a socket whose backlog is full. Linux
// refuses such a try at once, where a TCP connect would wait.
const backlogPause = 10 * time.Millisecond

// Unix connects to a Unix socket while the attempt lasts, but no longer than until, unless that is
// zero. The connection's deadline is the end of the first step. While the backlog of the socket is
// full, Unix goes on trying. A file system that does not answer keeps Unix no longer than the attempt
// may last.
func Unix(ctx context.Context, path string, watch *Stopwatch, until time.Time) (net.Conn, error) {
	for last := false; ; {
		conn, err := toSockets.connect(ctx, path, watch.Left()+Stretch)
		switch {
		case err == nil:
			watch.Move()
			_ = conn.SetDeadline(earlier(watch.Begin(), until))
			return conn, nil
		case !errors.Is(err, syscall.EAGAIN):
			return nil, unixError(err)
		case last, ctx.Err() != nil:
			watch.giveUp()
			return nil, unixFailed(path, os.ErrDeadlineExceeded)
		case !until.IsZero() && !time.Now().Before(until):
			return nil, unixFailed(path, os.ErrDeadlineExceeded)
		}
		watch.Move()
		// A backlog that has room by the end of the attempt is seen by one more try.
		last = !watch.Sleep(ctx, backlogPause)
	}
}

// unixError returns err with what it means: nobody accepts connections, or the agent lacks a right.
func unixError(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &meant{err, action.ErrLocalFile}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENOTSOCK), errors.Is(err, syscall.EPROTOTYPE):
		return &meant{err, syscall.ECONNREFUSED}
	}
	return err
}

// unixFailed returns the error of a connect that has failed with err, in the words of package net.
func unixFailed(path string, err error) error {
	return &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: err}
}

// meant is an error with a meaning beyond its text.
type meant struct {
	error
	meaning error
}

func (m *meant) Unwrap() []error { return []error{m.error, m.meaning} }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// toSockets are the connects to Unix sockets.
var toSockets = connects{dial: func(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}}

// errHangs says that a connect hangs. The system answers a connect to a Unix socket at once, but may
// wait for the file system of the path for ever.
var errHangs = &meant{errors.New("the file system does not answer"), action.ErrLocalFile}

// mostHung bounds the connects that hang at the same time. Each occupies a thread, and the Go runtime
// ends a process with 10,000 threads.
const mostHung = 1000

// connects makes connects that may hang. One that hangs keeps a goroutine and a thread, and nobody
// else: until it ends, connects makes no other to the same path.
type connects struct {
	dial func(ctx context.Context, path string) (net.Conn, error)

	mu   sync.Mutex
	hung map[string]struct{} // by path
}

// connect connects to a path. It waits no longer than limit, and until ctx is done.
func (c *connects) connect(ctx context.Context, path string, limit time.Duration) (net.Conn, error) {
	c.mu.Lock()
	_, hung := c.hung[path]
	full := len(c.hung) >= mostHung
	c.mu.Unlock()
	if hung || full {
		return nil, unixFailed(path, errHangs)
	}
	type made struct {
		conn net.Conn
		err  error
	}
	ended, gone := make(chan made), make(chan struct{})
	go func() {
		conn, err := c.dial(ctx, path)
		select {
		case ended <- made{conn, err}:
			return
		case <-gone:
		}
		if err == nil {
			LetGo(conn)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.hung, path)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var err error = errHangs
	select {
	case is := <-ended:
		return is.conn, is.err
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		c.hung = map[string]struct{}{}
	}
	c.hung[path] = struct{}{}
	close(gone)
	return nil, unixFailed(path, err)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// TimedConn is a connection that waits as long as its stopwatch says. Its user sees a single
// deadline with the usual error. The user's own deadlines hold if they are earlier.
//
// An answer within the first step has no extra cost.
type TimedConn struct {
	net.Conn
	Watch *Stopwatch

	// The user's deadlines, guarded by the stopwatch's mu, so that none is lost while the
	// end of the next step is set.
	read, write time.Time
}

// Read reads. After the end of the attempt Read returns what has arrived, and does not wait.
func (c *TimedConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err == nil || !RanOut(err) {
			c.Watch.Move()
			return n, err
		}
		switch again, ended := c.goOn(&c.read, c.Conn.SetReadDeadline); {
		case again:
		case ended:
			return c.look(p, err)
		default:
			return 0, err
		}
	}
}

// Write writes until the end of the attempt.
func (c *TimedConn) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := c.Conn.Write(p[done:])
		if done += n; n > 0 {
			c.Watch.Move()
		}
		if err == nil || !RanOut(err) {
			return done, err
		}
		if again, ended := c.goOn(&c.write, c.Conn.SetWriteDeadline); !again {
			if ended {
				c.Watch.giveUp()
			}
			return done, err
		}
	}
}

// goOn decides what to do when a step is over. If again is true, the caller waits for another
// step. Otherwise ended says that the attempt has ended; if not, the user's deadline has passed.
func (c *TimedConn) goOn(user *time.Time, set func(time.Time) error) (again, ended bool) {
	s, now := c.Watch, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !user.IsZero() && !now.Before(*user) {
		return false, false
	}
	if s.count(now); s.ended {
		return false, true
	}
	// The call that waits will return the error.
	_ = set(earlier(s.next(), *user))
	return true, false
}

// look reads what has arrived, up to lateBytes in all; if there is nothing, it returns the
// error none.
func (c *TimedConn) look(p []byte, none error) (int, error) {
	s := c.Watch
	s.mu.Lock()
	p = p[:min(len(p), lateBytes-s.late)]
	s.mu.Unlock()
	if len(p) > 0 {
		if n, err, ok := readNow(c.Conn, p); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.late += n
			s.silent = 0
			if n == 0 && err == nil {
				err = io.EOF
			}
			return n, err
		}
	}
	s.giveUp()
	return 0, none
}

// SetDeadline sets deadlines for the user.
func (c *TimedConn) SetDeadline(t time.Time) error {
	return c.set(t, c.Conn.SetDeadline, &c.read, &c.write)
}

// SetReadDeadline sets a deadline for the user's reads.
func (c *TimedConn) SetReadDeadline(t time.Time) error {
	return c.set(t, c.Conn.SetReadDeadline, &c.read)
}

// SetWriteDeadline sets a deadline for the user's writes.
func (c *TimedConn) SetWriteDeadline(t time.Time) error {
	return c.set(t, c.Conn.SetWriteDeadline, &c.write)
}

func (c *TimedConn) set(t time.Time, set func(time.Time) error, users ...*time.Time) error {
	c.Watch.mu.Lock()
	defer c.Watch.mu.Unlock()
	for _, user := range users {
		*user = t
	}
	return set(earlier(c.Watch.next(), t))
}

// SetLinger calls SetLinger of the connection below, if there is one.
func (c *TimedConn) SetLinger(seconds int) error {
	if l, ok := c.Conn.(lingerer); ok {
		return l.SetLinger(seconds)
	}
	return nil
}

// earlier returns the earlier of two times; the second may be zero.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// RanOut reports whether err is that of a deadline.
func RanOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

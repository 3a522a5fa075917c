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

// TimedConn is a connection that waits as long as its stopwatch says. Its user sees one
// deadline, with the error that a connection has for it; deadlines of the user's own
// hold if they are earlier.
//
// An answer that comes within the first step costs nothing more than without.
type TimedConn struct {
	net.Conn
	Watch *Stopwatch

	// The user's deadlines, guarded by the stopwatch's mu: so none is lost while the end
	// of the next step is set.
	read, write time.Time
}

// Read reads. After the end of the attempt it reads what there is, and does not wait.
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

// Write writes, until the end of the attempt.
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

// goOn decides what to do when a step is over: to wait for another one, or else whether
// that is because the attempt has ended. Otherwise it is the user's deadline that has
// passed.
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
	// An error is told by the call that waits.
	_ = set(earlier(s.next(), *user))
	return true, false
}

// look reads what is there, as long as it is not too much; if there is nothing, the
// error is none.
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

// SetLinger is that of the connection below, if it has one.
func (c *TimedConn) SetLinger(seconds int) error {
	if l, ok := c.Conn.(lingerer); ok {
		return l.SetLinger(seconds)
	}
	return nil
}

// earlier returns the earlier of two times, of which the second may be none.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// RanOut says that err is that of a deadline of ours.
func RanOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

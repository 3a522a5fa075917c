// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// hasAsked reports whether a stopwatch has counted that something was sent.
func hasAsked(s *Stopwatch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// A connect to a Unix socket whose backlog is full goes on until there is room.
func TestUnixWaitsForRoom(t *testing.T) {
	path, accept := actiontest.Crowded(t)
	watch := NewStopwatch(time.Minute)
	made := make(chan error)
	go func() {
		conn, err := Unix(t.Context(), path, watch, time.Time{})
		if err == nil {
			conn.Close()
		}
		made <- err
	}()
	testutil.Until(t, "a first try has found no room", func() bool { return hasAsked(watch) })
	accept()
	if err := <-made; err != nil || watch.Over() {
		t.Errorf("error %v, over: %t", err, watch.Over())
	}
}

// A connect to a Unix socket whose backlog is full ends at the time that its caller has set, and when
// the attempt is stopped. The attempt itself has not run out of time then.
func TestUnixEnds(t *testing.T) {
	path, _ := actiontest.Crowded(t)
	watch := NewStopwatch(time.Hour)
	_, err := Unix(t.Context(), path, watch, time.Now().Add(20*time.Millisecond))
	if !RanOut(err) || watch.RanOut(err) || err.Error() != "dial unix "+path+": i/o timeout" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watch = NewStopwatch(time.Hour)
	made := make(chan error)
	go func() {
		_, err := Unix(ctx, path, watch, time.Time{})
		made <- err
	}()
	testutil.Until(t, "a first try has found no room", func() bool { return hasAsked(watch) })
	cancel()
	if err := <-made; err == nil || watch.Over() {
		t.Errorf("error %v, over: %t", err, watch.Over())
	}
}

// When the time of an attempt is up, one more try tells whether the backlog has room.
func TestUnixLooksOnceMore(t *testing.T) {
	l := actiontest.ListenUnix(t, actiontest.Socket(t))
	crowded, _ := actiontest.Crowded(t)
	over := func() *Stopwatch {
		s := NewStopwatch(time.Hour)
		s.spent = s.timeout
		s.Tick()
		return s
	}
	conn, err := Unix(t.Context(), l.Addr().String(), over(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	watch := over()
	if _, err := Unix(t.Context(), crowded, watch, time.Time{}); action.Classify(err) != action.Timeout || !watch.RanOut(err) {
		t.Errorf("error %v", err)
	}
}

// An error keeps its text and tells what it means.
func TestUnixErrors(t *testing.T) {
	path := actiontest.Socket(t)
	_, err := Unix(t.Context(), path, NewStopwatch(time.Minute), time.Time{})
	if err == nil || err.Error() != "dial unix "+path+": connect: no such file or directory" ||
		action.Classify(err) != action.ConnectionRefused || errors.Is(err, action.ErrLocalFile) {
		t.Errorf("error %v", err)
	}
}

// A file system that does not answer makes an attempt unknown once its time is up, and all others at
// once until the answer comes. A connection that comes too late is closed. A stop waits for nothing.
func TestUnixHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan net.Conn)
		c := connects{dial: func(context.Context, string) (net.Conn, error) { return <-answers, nil }}
		for _, want := range []time.Duration{3 * time.Second, 0} {
			began := time.Now()
			_, err := c.connect(t.Context(), "/nfs/app.sock", 3*time.Second)
			if took := time.Since(began); took != want || !errors.Is(err, action.ErrLocalFile) || action.IsTimeout(err) ||
				err.Error() != "dial unix /nfs/app.sock: the file system does not answer" {
				t.Errorf("error %v after %v, want %v", err, took, want)
			}
		}
		made, far := net.Pipe()
		answers <- made
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the late connection: %v, want its end", err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.connect(ctx, "/nfs/app.sock", time.Hour); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, action.ErrLocalFile) {
			t.Errorf("stopped: error %v", err)
		}
		late, _ := net.Pipe()
		answers <- late
		synctest.Wait()
		go func() { answers <- made }()
		if conn, err := c.connect(t.Context(), "/nfs/app.sock", time.Hour); conn != made || err != nil || len(c.hung) != 0 {
			t.Errorf("error %v, %d connects hang", err, len(c.hung))
		}
	})
}

// However many sockets are on a file system that does not answer, the connects to them do not use up
// the threads of the process.
func TestManyUnixHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var dials atomic.Int64
		c := connects{dial: func(context.Context, string) (net.Conn, error) {
			dials.Add(1)
			<-release
			return nil, errHangs
		}}
		for i := range mostHung + 10 {
			if _, err := c.connect(t.Context(), strconv.Itoa(i), time.Second); !errors.Is(err, action.ErrLocalFile) {
				t.Errorf("error %v", err)
			}
		}
		if n := dials.Load(); n != mostHung {
			t.Errorf("%d connects, want %d", n, mostHung)
		}
		close(release)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.hung) != 0 {
			t.Errorf("%d hang after the end", len(c.hung))
		}
	})
}

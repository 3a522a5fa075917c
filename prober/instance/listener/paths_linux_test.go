// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// behind returns the configuration of app, behind Unix sockets.
func behind(paths ...string) *config.Target {
	c := &config.Target{Name: "app", Instance: watch}
	c.Instance.Listeners = nil
	for _, path := range paths {
		c.Instance.Listeners = append(c.Instance.Listeners, config.Listener{Host: "unix://" + path})
	}
	return c
}

// watchingPaths returns a running listener that watches app behind these sockets. look takes a fresh
// look and returns the instance.
func watchingPaths(t *testing.T, paths ...string) (l *Source, look func() gate.Instance) {
	t.Helper()
	l = New(slog.New(slog.DiscardHandler))
	l.witness = nil // this process holds the sockets, and runs on
	l.Watch(behind(paths...))
	return l, running(t, l)
}

// running runs a source until the end of the test, and returns a function that takes a fresh look at
// app after a failed attempt.
func running(t *testing.T, l *Source) (look func() gate.Instance) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := l.Run(ctx, func(string) {}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return func() gate.Instance {
		l.AttemptFailed("app")
		l.Look(ctx)
		return l.Instance("app")
	}
}

// stay keeps the file of a socket when its listener is closed.
func stay(l *net.UnixListener) *net.UnixListener {
	l.SetUnlinkOnClose(false)
	return l
}

// A Unix socket that is closed ends the instance, whether its file stays or goes. The socket that is
// bound there next is the next instance.
func TestPathsSeeARestart(t *testing.T) {
	path := actiontest.Socket(t)
	s := actiontest.ListenUnix(t, path)
	l, look := watchingPaths(t, path)
	if is := l.Instance("app"); is.Phase != gate.Running || !is.StartedAt.IsZero() || !l.Sees("app") || l.Describe("app").Message != "" {
		t.Fatalf("a socket from before the agent: %+v", is)
	}
	is := look()
	for range 2 {
		stay(s).Close()
		if ended := look(); ended.Phase != gate.Terminated || ended.ID != is.ID {
			t.Errorf("closed: %+v", ended)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if ended := look(); ended.Phase != gate.Terminated {
			t.Errorf("removed: %+v", ended)
		}
		s = actiontest.ListenUnix(t, path)
		next := look()
		if next.Phase != gate.Running || next.ID == is.ID || next.StartedAt.IsZero() {
			t.Errorf("bound again: %+v after %+v", next, is)
		}
		is = next
	}
}

// A socket whose file is removed still listens, so its instance goes on, and failures count against it.
func TestPathsWithoutAFile(t *testing.T) {
	path := actiontest.Socket(t)
	s := actiontest.ListenUnix(t, path)
	_, look := watchingPaths(t, path)
	first := look()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := look(); got != first {
			t.Fatalf("got %+v, want %+v", got, first)
		}
	}
	stay(s).Close()
	if got := look(); got.Phase != gate.Terminated {
		t.Errorf("after the end: %+v", got)
	}
}

// A server that takes the place of another without a gap, by a rename, is the next instance, although
// the one before still listens.
func TestPathsSeeAReplacement(t *testing.T) {
	path := actiontest.Socket(t)
	stay(actiontest.ListenUnix(t, path))
	l, look := watchingPaths(t, path)
	first := look()
	stay(actiontest.ListenUnix(t, path+".new"))
	if got := look(); got != first {
		t.Errorf("a socket elsewhere: %+v, want %+v", got, first)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	l.Look(t.Context())
	if got := l.Instance("app"); got.Phase != gate.Running || got.ID == first.ID {
		t.Errorf("got %+v after %+v", got, first)
	}
}

// The socket of another program, with the same path in the kernel's list, is not the target's: its file
// is another one.
func TestPathsOfOthers(t *testing.T) {
	path := actiontest.Socket(t)
	stay(actiontest.ListenUnix(t, path))
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	l, look := watchingPaths(t, path)
	if got := look(); got.MaxHold != gate.Never || l.Sees("app") || l.Describe("app").Message != "no listening socket seen yet: treated like static" {
		t.Errorf("got %+v, %q", got, l.Describe("app").Message)
	}
}

// The first socket of a target that the agent has waited for is its instance, and two sockets of one
// target are one set.
func TestPathsOfOneTarget(t *testing.T) {
	one, two := actiontest.Socket(t), actiontest.Socket(t)
	l, look := watchingPaths(t, one, two)
	before := look()
	first := actiontest.ListenUnix(t, one)
	is := look()
	if is.From != before.ID || !l.Sees("app") {
		t.Errorf("the first socket: %+v after %+v", is, before)
	}
	actiontest.ListenUnix(t, two)
	if got := look(); got.ID != is.ID {
		t.Errorf("the second socket: %+v", got)
	}
	first.Close()
	if got := look(); got.ID != is.ID || got.Phase != gate.Running {
		t.Errorf("without the first: %+v", got)
	}
}

// Targets come and go. Nothing is read for paths that nobody watches.
func TestPathsWatchedAndForgotten(t *testing.T) {
	path := actiontest.Socket(t)
	actiontest.ListenUnix(t, path)
	l, look := watchingPaths(t, path+".old")
	l.Watch(behind(path))
	if got := l.Instance("app"); !l.Sees("app") || got.Phase != gate.Running {
		t.Errorf("another path: %+v", got)
	}
	other := behind(path)
	other.Name = "other"
	l.Watch(other)
	kept := func() (targets, paths int, read bool) {
		l.reading.Lock()
		defer l.reading.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.paths.wanted[path], len(l.paths.wanted) + len(l.there.byPath), l.paths.read
	}
	look()
	if targets, paths, read := kept(); targets != 2 || paths != 2 || !read {
		t.Errorf("%d targets, %d paths, read %t", targets, paths, read)
	}
	l.Forget("other")
	l.Forget("app")
	look()
	if targets, paths, read := kept(); targets != 0 || paths != 0 || read {
		t.Errorf("%d targets, %d paths, read %t", targets, paths, read)
	}
}

// The listening process is the witness of its Unix sockets, as of others: it tells a socket that the
// same process has opened again from a restart.
func TestPathsHaveWitnesses(t *testing.T) {
	path := actiontest.Socket(t)
	s := actiontest.ListenUnix(t, path)
	l := New(slog.New(slog.DiscardHandler))
	l.Watch(behind(path))
	look := running(t, l)
	first := look()
	stay(s).Close()
	if got := look(); got.Phase != gate.Running || l.Describe("app").Message != "the process runs but does not listen" {
		t.Errorf("closed: %+v, %q", got, l.Describe("app").Message)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	actiontest.ListenUnix(t, path)
	if got := look(); got.ID != first.ID || got.Phase != gate.Running {
		t.Errorf("opened again by the same process: %+v, want %+v", got, first)
	}
}

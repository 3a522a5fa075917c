// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// seeing returns a witness, a real process that holds a listening socket, and the inodes of its
// sockets.
func seeing(t *testing.T, command string) (w *procWitness, pid int, inodes []uint64) {
	t.Helper()
	w = newWitness().(*procWitness)
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := port(s)
	f := testutil.SocketOf(t, s)
	pid = testutil.Orphan(t, command, f)
	_ = f.Close()
	table := new(proc.Sockets)
	defer table.Close()
	found, err := table.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		if int(one.Local.Port()) == at {
			inodes = append(inodes, one.Inode)
		}
	}
	return w, pid, inodes
}

// holderOfAll returns the holder of the sockets.
func holderOfAll(t *testing.T, w *procWitness, inodes []uint64) *holder {
	t.Helper()
	w.next = time.Time{}
	found, ok := w.holders(inodes)
	if !ok {
		t.Fatal("the witness did not walk over the processes")
	}
	h := &holder{looked: true}
	for _, one := range found {
		h.add(one)
	}
	return h
}

// The witness finds the process that holds a socket, and its command line. The process runs
// until it has ended, with the socket or without.
func TestFate(t *testing.T) {
	command := "sleep " + testutil.Unique()
	w, pid, inodes := seeing(t, command)
	h := holderOfAll(t, w, inodes)
	if len(h.processes) != 1 || h.processes[0].PID != pid || h.command != command {
		t.Fatalf("the holder is %+v, want %d, %q", h, pid, command)
	}
	if got := w.fate(h, inodes); got != reopened {
		t.Errorf("with its socket: %d, want %d", got, reopened)
	}
	if got := w.fate(h, nil); got != runs {
		t.Errorf("without a socket: %d, want %d", got, runs)
	}
	testutil.Kill(t, pid)
	if got := w.fate(h, inodes); got != gone {
		t.Errorf("after its end: %d, want %d", got, gone)
	}
	another := *h
	another.processes = []proc.Process{{PID: 1, Start: 1 << 60}}
	if got := w.fate(&another, nil); got != gone {
		t.Errorf("with its number at another process: %d, want %d", got, gone)
	}
}

// A socket that no process holds has no holder, and neither has the socket of a process that
// the agent may not see.
func TestHolderUnseen(t *testing.T) {
	w, pid, inodes := seeing(t, "sleep "+testutil.Unique())
	testutil.Kill(t, pid)
	if h := holderOfAll(t, w, inodes); len(h.processes) != 0 || h.command != "" {
		t.Errorf("the holder is %+v", h)
	}
}

// If a process with the same command line began later, it is another life of the target. An
// older process is not, and neither is a process that has ended.
func TestBegun(t *testing.T) {
	command := "sleep " + testutil.Unique()
	w, pid, _ := seeing(t, command)
	begun := func(since time.Time) bool {
		t.Helper()
		w.next = time.Time{}
		found, ok := w.begun(map[string]time.Time{command: since})
		if !ok {
			t.Fatal("the processes were not gone through")
		}
		return found[command]
	}
	if !begun(time.Now().Add(-time.Hour)) || begun(time.Now().Add(time.Hour)) {
		t.Error("the process did not begin between an hour ago and in an hour")
	}
	testutil.Kill(t, pid)
	if begun(time.Now().Add(-time.Hour)) {
		t.Error("an ended process counts as begun")
	}
}

// Two targets had the same command line, and one of them has ended for good. If a process is
// younger than both ends, it is another life of both. If it began between the ends, it is not.
func TestRebornOfTwo(t *testing.T) {
	command := "sleep " + testutil.Unique()
	seeing(t, command)
	now := time.Now()
	for _, c := range []struct {
		ends [2]time.Duration // before now, when the process began
		want bool
	}{
		{[2]time.Duration{time.Hour, 2 * time.Hour}, true},
		{[2]time.Duration{2 * time.Hour, time.Hour}, true},
		{[2]time.Duration{time.Hour, -time.Hour}, false},
		{[2]time.Duration{-time.Hour, time.Hour}, false},
	} {
		l := New(slog.New(slog.DiscardHandler))
		ended := gate.Instance{Phase: gate.Terminated}
		for i, name := range []string{"one", "two"} {
			l.targets[name] = &listening{instance: ended, holder: holder{command: command}, endedAt: now.Add(-c.ends[i])}
		}
		got := l.reborn(now.Add(3 * time.Hour))
		if got["one"] != c.want || got["two"] != c.want {
			t.Errorf("ended %v before: %v, want %t for both", c.ends, got, c.want)
		}
	}
}

// Walks over all processes keep their distance.
func TestWitnessIsBounded(t *testing.T) {
	w := newWitness().(*procWitness)
	w.next = time.Now().Add(time.Hour)
	if _, ok := w.holders([]uint64{1}); ok {
		t.Error("the witness looked for holders too soon")
	}
	if _, ok := w.begun(map[string]time.Time{"sleep": {}}); ok {
		t.Error("the witness looked for processes too soon")
	}
}

// This test shows a whole source. A process that the source has seen hold the sockets runs on
// when they close, so the instance has not ended. When the process ends, the instance ends
// without a failed attempt.
func TestListenerFollowsItsProcess(t *testing.T) {
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(slog.New(slog.DiscardHandler))
	c := target("app")
	c.Instance.Listeners = []config.Listener{{Host: "127.0.0.1", Port: port(s)}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	f := testutil.SocketOf(t, s)
	pid := testutil.Orphan(t, "sleep "+testutil.Unique(), f)
	_ = f.Close()
	l.Watch(c)
	go func() { done <- l.Run(ctx, func(string) {}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	was := l.Instance("app")
	testutil.Until(t, "the source knows the process", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.targets["app"].holder.processes) > 0
	})
	testutil.Kill(t, pid)
	testutil.Until(t, "the source sees the end", func() bool {
		l.Look(ctx)
		return l.Instance("app").Phase == gate.Terminated
	})
	if got := l.Instance("app"); got.ID != was.ID {
		t.Errorf("the instance ended as %+v, was %+v", got, was)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.targets["app"].missed() {
		t.Error("an attempt has failed")
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"bytes"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// What has ended can be told to run, and nothing else can.
func TestListenerDeclare(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		if l.Declare("app") || l.Declare("nobody") {
			t.Error("something that runs, or nobody, was begun")
		}
		b.set()
		l.AttemptFailed("app")
		time.Sleep(time.Second)
		told()
		if now := time.Now(); !l.Declare("app") || l.Instance("app").StartedAt != now || l.Instance("app").Phase != gate.Running {
			t.Errorf("got %+v, want one that runs since %v", l.Instance("app"), now)
		}
		if got := l.Describe("app").Message; got != "does not listen yet" {
			t.Errorf("described as %q", got)
		}
	})
}

// Sockets that are gone are looked for ten times a second, and whoever asks is told that an
// attempt would say whether the target has ended; without one it has after 2 s.
func TestListenerInDoubt(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		was := l.Instance("app")
		b.set()
		time.Sleep(time.Second)
		b.since()
		if got := told(); got != "app" || !l.InDoubt("app") || l.InDoubt("nobody") || l.Instance("app") != was {
			t.Errorf("told %q, lost %t, %+v", got, l.InDoubt("app"), l.Instance("app"))
		}
		time.Sleep(time.Second)
		if got := b.since(); got < 9 || got > 11 {
			t.Errorf("%d reads in a second, want 10", got)
		}
		b.set(2)
		time.Sleep(150 * time.Millisecond)
		if got := l.Instance("app"); l.InDoubt("app") || got.From != was.ID || told() != "app" {
			t.Errorf("listens again: %+v", got)
		}
		b.set()
		time.Sleep(time.Second + handOverGap + 150*time.Millisecond)
		if got := l.Instance("app"); l.InDoubt("app") || got.Phase != gate.Terminated {
			t.Errorf("%v without a socket: %+v", handOverGap, got)
		}
	})
}

// A kubelet that asks about what has ended, later than maxHold after the end, begins the
// next instance, and nobody else is asked about.
func TestListenerAsked(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		ask := func() gate.Instance {
			l.Asked("app", time.Now())
			l.Asked("nobody", time.Now())
			told()
			return l.Instance("app")
		}
		was := ask()
		if was.ID != "socket-1" {
			t.Fatalf("asked while it listens: %+v", was)
		}
		b.set()
		l.AttemptFailed("app")
		time.Sleep(time.Second)
		if got := ask(); got.Phase != gate.Terminated {
			t.Errorf("asked right after the end: %+v", got)
		}
		time.Sleep(time.Hour)
		if got := l.Instance("app"); got.Phase != gate.Terminated {
			t.Errorf("an hour later, and nobody has asked: %+v", got)
		}
		told()
		l.Asked("app", time.Now())
		if got := told(); got != "app" || l.Instance("app").Phase != gate.Running || l.Instance("app").StartedAt != time.Now() {
			t.Errorf("asked an hour later: told %q, %+v", got, l.Instance("app"))
		}
	})
}

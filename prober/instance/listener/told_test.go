// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"bytes"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// Somebody may declare that an ended target runs again, and no other target.
func TestListenerDeclare(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		if l.Declare("app") || l.Declare("nobody") {
			t.Error("Declare began an instance of a running or unknown target")
		}
		b.set()
		l.AttemptFailed("app")
		time.Sleep(time.Second)
		told()
		if now := time.Now(); !l.Declare("app") || l.Instance("app").StartedAt != now || l.Instance("app").Phase != gate.Running {
			t.Errorf("got %+v, want an instance that runs since %v", l.Instance("app"), now)
		}
		if got := l.Describe("app").Message; got != "does not listen yet" {
			t.Errorf("described as %q", got)
		}
	})
}

// The source looks ten times a second for sockets that are gone. Meanwhile InDoubt says that an
// attempt would show whether the target has ended. Without an attempt, the target has ended
// after 2 s.
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

// A kubelet that asks for an ended target later than maxHold after the end begins the target's
// next instance, and no other target's.
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
			t.Fatalf("asked for a target that listens: %+v", was)
		}
		b.set()
		l.AttemptFailed("app")
		time.Sleep(time.Second)
		if got := ask(); got.Phase != gate.Terminated {
			t.Errorf("asked right after the end: %+v", got)
		}
		time.Sleep(time.Hour)
		if got := l.Instance("app"); got.Phase != gate.Terminated {
			t.Errorf("an hour later, without a question: %+v", got)
		}
		told()
		l.Asked("app", time.Now())
		if got := told(); got != "app" || l.Instance("app").Phase != gate.Running || l.Instance("app").StartedAt != time.Now() {
			t.Errorf("asked an hour later: told %q, %+v", got, l.Instance("app"))
		}
	})
}

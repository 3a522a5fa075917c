// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// If the table cannot be read, the agent sees no restart, and the last view stays. One log line
// says that the table cannot be read, and another line that it can be read again.
func TestListenerBroken(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, log *bytes.Buffer) {
		was := l.Instance("app")
		b.fail(errors.New("no permission"))
		b.set()
		time.Sleep(10*time.Second + time.Second/2) // the time between two reads
		if l.Up() || l.Instance("app") != was || strings.Count(log.String(), "level=WARN") != 1 ||
			!strings.Contains(l.Describe("app").Message, "no permission") {
			t.Errorf("up %t, %+v, described as %q, log:\n%s", l.Up(), l.Instance("app"), l.Describe("app").Message, log)
		}
		b.fail(nil)
		b.set(1)
		time.Sleep(10 * time.Second)
		if !l.Up() || l.Instance("app") != was || strings.Count(log.String(), "can read listening sockets again") != 1 || told() != "" {
			t.Errorf("up %t, %+v, log:\n%s", l.Up(), l.Instance("app"), log)
		}
	})
}

// Sockets that are read in another way all have other IDs, but that is no restart.
func TestListenerOtherMethod(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, _ func() string, _ *bytes.Buffer) {
		was := l.Instance("app")
		b.set(2001)
		b.mu.Lock()
		b.method = "another"
		b.mu.Unlock()
		time.Sleep(2 * time.Second)
		if got := l.Instance("app"); got != was {
			t.Errorf("got %+v, want %+v", got, was)
		}
		b.set(2002)
		time.Sleep(2 * time.Second)
		if got := l.Instance("app").ID; got != "socket-7d2" {
			t.Errorf("a restart after that: %q", got)
		}
	})
}

// An instance that has ended counts as running after maxHold, even if sockets cannot be read.
func TestListenerBrokenAfterTheEnd(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		b.set()
		l.AttemptFailed("app")
		time.Sleep(1500 * time.Millisecond)
		b.fail(errors.New("too many open files"))
		told()
		time.Sleep(watch.MaxHold)
		if got := l.Instance("app"); got.Phase != gate.Running || told() != "app" {
			t.Errorf("%v after the end: %+v; want a running instance, and a notice", watch.MaxHold, got)
		}
	})
}

// The source sees an end that comes with a change of the way of reading.
func TestListenerOtherMethodAtTheEnd(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, _ func() string, _ *bytes.Buffer) {
		b.set()
		b.mu.Lock()
		b.method = "another"
		b.mu.Unlock()
		time.Sleep(2*time.Second + handOverGap)
		if got := l.Instance("app"); got.Phase != gate.Terminated {
			t.Errorf("got %+v", got)
		}
	})
}

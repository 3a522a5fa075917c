// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// board is a table of sockets that a test writes.
type board struct {
	mu     sync.Mutex
	pass   func() // called during a read, for the time that the read takes; may be nil
	found  []proc.Socket
	err    error
	method string
	reads  int
}

func (b *board) Read(into []proc.Socket) ([]proc.Socket, error) {
	b.mu.Lock()
	pass := b.pass
	b.mu.Unlock()
	if pass != nil {
		pass()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	return append(into, b.found...), b.err
}

func (b *board) How() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.method
}

func (b *board) Close() {}

// set makes ids the sockets of port 80.
func (b *board) set(ids ...uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = nil
	for _, id := range ids {
		b.found = append(b.found, proc.Socket{ID: id, Local: netip.MustParseAddrPort("127.0.0.1:80")})
	}
}

func (b *board) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// since returns the number of reads since the last call.
func (b *board) since() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.reads
	b.reads = 0
	return n
}

// inBubble runs f in a bubble with a listener that watches app at port 80. A read of the
// sockets takes cost.
func inBubble(t *testing.T, cost time.Duration, ids []uint64, f func(l *Source, b *board, told func() string, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var log bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&log, nil)))
		l.witness = nil
		b := &board{pass: func() { time.Sleep(cost) }, method: "one"}
		b.set(ids...)
		l.table = b
		var mu sync.Mutex
		var names []string
		l.Watch(target("app"))
		ctx, cancel := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() {
			if err := l.Run(ctx, func(name string) {
				l.Instance(name) // as the manager does
				mu.Lock()
				defer mu.Unlock()
				names = append(names, name)
			}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		f(l, b, func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			all := strings.Join(names, " ")
			names = nil
			return all
		}, &log)
		cancel()
		done.Wait()
	})
}

func target(name string) *config.Target { return &config.Target{Name: name, Instance: watch} }

// The source reads sockets once a second. It reads ten times a second while a probe is held or
// while a target has ended.
func TestListenerRefresh(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		count := func(when string, want int) {
			t.Helper()
			b.since()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got := b.since(); got < want-1 || got > want+1 {
				t.Errorf("%s: %d reads in 2 s, want %d", when, got, want)
			}
		}
		count("at rest", 2)
		l.Held("app", true)
		count("held", 20)
		l.Held("app", false)
		count("not held any more", 2)
		b.set()
		l.AttemptFailed("app")
		time.Sleep(time.Second)
		if got := told(); got != "app" || l.Instance("app").Phase != gate.Terminated {
			t.Errorf("a second after the end: told %q, %+v", got, l.Instance("app"))
		}
		count("ended", 20)
		time.Sleep(watch.MaxHold)
		count("ended long ago", 2)
		b.set(2)
		time.Sleep(1100 * time.Millisecond)
		if got := told(); got != "app" || l.Instance("app").ID != "socket-2" {
			t.Errorf("a second after the next one listens: told %q, %+v", got, l.Instance("app"))
		}
		count("running again", 2)
		l.Forget("app")
		count("nothing to watch", 0)
		l.Watch(target("app"))
		count("watched again", 2)
		eager := target("eager")
		eager.Instance.Refresh = 200 * time.Millisecond
		l.Watch(eager)
		l.Watch(target("another"))
		count("one of three wants more", 10)
		l.Forget("eager")
		count("it is gone", 2)
		if got := told(); got != "" {
			t.Errorf("told of %q without a change", got)
		}
	})
}

// When Look returns, the source has read sockets since the call and has told of the change.
func TestListenerLook(t *testing.T) {
	inBubble(t, 0, []uint64{1}, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		time.Sleep(time.Second / 3)
		b.set()
		l.AttemptFailed("app")
		l.Look(context.Background())
		if got := told(); got != "app" || l.Instance("app").Phase != gate.Terminated {
			t.Errorf("told %q, %+v", got, l.Instance("app"))
		}
	})
}

// However many callers ask, reads take at most a tenth of the time, and every caller gets an
// answer. If 100 callers ask every 10 ms for a table that takes 5 ms to read, there are at most
// 20 reads a second.
func TestListenerLooksAreBounded(t *testing.T) {
	inBubble(t, 5*time.Millisecond, []uint64{1}, func(l *Source, b *board, _ func() string, _ *bytes.Buffer) {
		b.since()
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				for begin := time.Now(); time.Since(begin) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
					l.Look(context.Background())
				}
			})
		}
		asking.Wait()
		if got := b.since(); got < 20 || got > 42 {
			t.Errorf("%d reads in 2 s, want 40 at most", got)
		}
	})
}

// However long a read seems to take, the next read comes a second later at most: the agent may
// have been frozen during the read.
func TestListenerLooksAfterAFreeze(t *testing.T) {
	inBubble(t, 30*time.Second, []uint64{1}, func(l *Source, b *board, _ func() string, _ *bytes.Buffer) {
		time.Sleep(40 * time.Second)
		b.mu.Lock()
		b.pass = nil
		b.mu.Unlock()
		time.Sleep(30*time.Second + 500*time.Millisecond) // for the read that is under way, and between two reads
		b.set()
		l.AttemptFailed("app")
		begin := time.Now()
		l.Look(context.Background())
		if took := time.Since(begin); took > time.Second || l.Instance("app").Phase != gate.Terminated {
			t.Errorf("the look took %v and saw %+v", took, l.Instance("app"))
		}
	})
}

// Look returns when its caller's context is done.
func TestListenerLookIsCutShort(t *testing.T) {
	inBubble(t, 100*time.Millisecond, []uint64{1}, func(l *Source, _ *board, _ func() string, _ *bytes.Buffer) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		begin := time.Now()
		l.Look(ctx)
		l.Look(ctx)
		if took := time.Since(begin); took != 10*time.Millisecond {
			t.Errorf("returned after %v, want 10ms", took)
		}
	})
}

// A thousand targets that come at once cost one read. The source tells of each change by
// itself.
func TestListenerManyTargets(t *testing.T) {
	inBubble(t, 0, nil, func(l *Source, b *board, told func() string, _ *bytes.Buffer) {
		time.Sleep(time.Second / 2)
		b.since()
		for i := range 1000 {
			c := target(fmt.Sprintf("t%d", i))
			c.Instance.Listeners = []config.Listener{{Host: "127.0.0.1", Port: 1000 + i}}
			l.Watch(c)
		}
		if got := b.since(); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
		b.mu.Lock()
		b.found = append(b.found, proc.Socket{ID: 7, Local: netip.MustParseAddrPort("127.0.0.1:1007")})
		b.mu.Unlock()
		time.Sleep(time.Second)
		if got := told(); got != "t7" {
			t.Errorf("told of %q, want t7", got)
		}
		if d := l.Describe("t8").Message; d != "no listening socket seen yet: treated like static" || l.Describe("nobody") != (instance.Details{}) {
			t.Errorf("t8 is described as %q", d)
		}
		if l.Instance("nobody") != (gate.Instance{}) {
			t.Error("a target that nobody watches has an instance")
		}
	})
}

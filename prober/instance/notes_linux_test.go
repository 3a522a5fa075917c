// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// calling is a log that does something with every line.
type calling struct{ do func(line string) }

func (calling) Enabled(context.Context, slog.Level) bool { return true }
func (c calling) WithAttrs([]slog.Attr) slog.Handler     { return c }
func (c calling) WithGroup(string) slog.Handler          { return c }

func (c calling) Handle(_ context.Context, r slog.Record) error {
	c.do(r.Message)
	return nil
}

// A log that asks the source something itself, or that nobody reads, holds up nobody: it
// is written with no lock held, and never by who calls Watch.
func TestListenerLogsWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stuck, logged := make(chan struct{}), make(chan string, 10)
		var l *Listener
		l = NewListener(slog.New(calling{func(line string) {
			l.Watch(target("another"))
			logged <- line
			<-stuck
		}}))
		b := &board{method: "one"}
		b.fail(errors.New("no permission"))
		l.table = b
		l.Watch(target("app"))
		var running sync.WaitGroup
		running.Go(func() { l.Run(ctx, func(string) {}) })
		if got := <-logged; got != "listening sockets cannot be read: restarts are not seen" {
			t.Errorf("got %q", got)
		}
		b.fail(nil)
		time.Sleep(time.Minute)
		l.Watch(target("app")) // reads, and has something to log again
		if !l.Up() {
			t.Error("not up: nothing was read while the log was stuck")
		}
		close(stuck)
		cancel()
		running.Wait()
	})
}

// As with the listener.
func TestProcessLogsWithoutTheTurn(t *testing.T) {
	logged := make(chan string, 10)
	var p *Process
	p = NewProcess(slog.New(calling{func(line string) {
		p.Look(t.Context()) // takes the turn
		logged <- line
	}}))
	t.Cleanup(func() { p.eyes.sockets.close() })
	p.Watch(byFile("app", pidFile(t, filepath.Join(t.TempDir(), "pid"), "nonsense")))
	run(t, p)
	if got, want := <-logged, "process of target cannot be looked up: what was seen last stays"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// As with the listener.
func TestKubernetesLogsWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, logged := make(chan struct{}), make(chan string, 10)
		var k *Kubernetes
		k = NewKubernetes(slog.New(calling{func(line string) {
			k.Describe("app")
			logged <- line
			<-stuck
		}}))
		k.see(aPodOf(t, ``, ``), nil)
		k.Watch(appTarget("app", "nobody"))
		k.Watch(appTarget("another", "nobody"))
		ctx, cancel := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() { k.write(ctx) })
		<-logged
		k.Watch(appTarget("third", "nobody"))
		close(stuck)
		synctest.Wait()
		if got := len(logged); got != 2 {
			t.Errorf("%d more lines, want 2", got)
		}
		cancel()
		writing.Wait()
	})
}

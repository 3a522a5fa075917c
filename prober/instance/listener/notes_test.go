// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// A log that asks the source something, or that nobody reads, holds up nobody. The source holds
// no lock while it writes the log, and Watch never writes it.
func TestListenerLogsWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stuck, logged := make(chan struct{}), make(chan string, 10)
		var l *Source
		l = New(slog.New(testutil.LogFunc(func(line string) {
			l.Watch(target("another"))
			logged <- line
			<-stuck
		})))
		b := &board{method: "one"}
		b.fail(errors.New("no permission"))
		l.table = b
		l.Watch(target("app"))
		var running sync.WaitGroup
		running.Go(func() { l.Run(ctx, func(string) {}) })
		if got := <-logged; got != "cannot read listening sockets: the agent sees no restarts" {
			t.Errorf("got %q", got)
		}
		b.fail(nil)
		time.Sleep(time.Minute)
		l.Watch(target("app")) // reads, and again has something to log
		if !l.Up() {
			t.Error("the source is not up: it did not read while the log was stuck")
		}
		close(stuck)
		cancel()
		running.Wait()
	})
}

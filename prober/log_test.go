// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// calling is a log that calls do with every line.
type calling struct{ do func(line string) }

func (calling) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (c calling) WithAttrs([]slog.Attr) slog.Handler         { return c }
func (c calling) WithGroup(string) slog.Handler              { return c }

func (c calling) Handle(_ context.Context, r slog.Record) error {
	c.do(r.Message)
	return nil
}

// meets makes everything happen that the agent logs of probes and instances, and of a reload
// that finds a new instance.
func meets(w *world, v *view) {
	c := watched("view")
	c.Instance.Auto = true
	ends := func() {
		ended := v.Instance("app")
		ended.Phase = gate.Terminated
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen["app"] = ended // without a notice: the reload finds it
	}
	w.apply(c)
	v.sees(runs("a"))
	w.says("app/liveness", bad)
	w.sleepUntil(5 * time.Second)
	v.sees(runs("b"))
	w.m.NewInstance("app")
	ends()
	w.apply(labelled(c, "x"))
	v.mu.Lock()
	v.seen["app"] = runs("c")
	v.mu.Unlock()
	source := c
	source.Instance.Source = "other"
	w.apply(labelled(source, "y"))
	w.stuckIn("app/readiness")()
	w.sleepUntil(10 * time.Second)
	w.apply()
}

func logging(t *testing.T, do func(w *world, line string), then func(w *world, v *view)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		v := &view{seen: map[string]gate.Instance{}}
		w.m.log = slog.New(calling{func(line string) { do(w, line) }})
		w.m.sources.log = w.m.log
		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return v }
		then(w, v)
	})
}

// free returns once nobody holds a lock.
func free(lock *sync.Mutex) {
	lock.Lock()
	defer lock.Unlock()
}

// A log that asks the manager about everything gets its answers: the agent holds no lock while
// it writes a line.
func TestLogWithoutLocks(t *testing.T) {
	lines := map[string]bool{}
	var mu sync.Mutex
	logging(t, func(w *world, line string) {
		w.m.Status(Full)
		w.m.Summary()
		w.m.Target("app", Full)
		w.m.Overdue()
		w.m.Waiting()
		w.m.Removed("app")
		w.m.Probe("nobody")
		w.m.NewInstance("nobody")
		w.m.Lateness()
		free(&w.m.applying)
		mu.Lock()
		defer mu.Unlock()
		lines[line] = true
	}, meets)
	for _, line := range []string{"instance source chosen", "probe failed", "result changed", "new instance", "instance does not run"} {
		if !lines[line] {
			t.Errorf("not logged: %s; the test must make it happen", line)
		}
	}
}

// While the log of a reload blocks, the manager still answers questions, accepts notices of new
// instances, and reloads.
func TestLogThatBlocks(t *testing.T) {
	var stuck atomic.Pointer[chan struct{}]
	logging(t, func(*world, string) {
		if c := stuck.Load(); c != nil {
			<-*c
		}
	}, func(w *world, v *view) {
		w.apply(watched("view"))
		v.sees(runs("a"))
		w.sleepUntil(time.Second)
		w.is("app", "SRL")
		release := make(chan struct{})
		stuck.Store(&release)
		ended := v.Instance("app")
		ended.Phase = gate.Terminated
		v.mu.Lock()
		v.seen["app"] = ended
		v.mu.Unlock()
		var reloads sync.WaitGroup
		for i := range 2 {
			reloads.Go(func() {
				if err := w.m.Apply(&config.Config{Targets: []config.Target{labelled(watched("view"), fmt.Sprint(i))}}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		w.is("app", "srL")
		if s, _ := w.m.Target("app", Brief); s.Labels[0].Value != "1" {
			t.Errorf("%+v: the second reload waits for the log of the first", s.Labels)
		}
		if got := w.m.Status(Full).Summary; got.Ready != 0 || got.Live != 1 {
			t.Errorf("%+v, want no target ready and one live", got)
		}
		close(release)
		reloads.Wait()
	})
}

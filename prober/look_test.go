// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// A look tells of what the source finds at that moment, and whether the source sees that
// instance: not when it is blind, when another instance stands in, when a reload or the end of the
// context comes in between.
func TestLook(t *testing.T) {
	inView(t, func(w *world, v *view) {
		look := func(want string, seen bool, when string) {
			t.Helper()
			s, ok := w.m.Look(context.Background(), "app", Brief)
			if s.Instance.ID != want || ok != seen {
				t.Errorf("%s: got %q, seen %t, want %q, %t", when, s.Instance.ID, ok, want, seen)
			}
		}
		look("", false, "before the first instance")
		v.sees(runs("a"))
		look("a", true, "with an instance")
		v.looks(func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.seen["app"] = gate.Instance{ID: "b", Phase: gate.Running}
		}, 0)
		look("b", true, "with another, which the source has not told of")
		v.looks(nil, 0)
		w.m.NewInstance("app")
		look("b/1", true, "with a declared one")

		v.mu.Lock()
		v.blind = true
		v.mu.Unlock()
		look("b/1", false, "blind")
		v.mu.Lock()
		v.blind = false
		v.mu.Unlock()

		v.looks(nil, time.Minute)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if s, ok := w.m.Look(ctx, "app", Brief); ok || s.Instance.ID != "b/1" || time.Since(began) != time.Second {
			t.Errorf("got %q, seen %t after %v, want an early end", s.Instance.ID, ok, time.Since(began))
		}

		v.looks(func() {
			v.looks(nil, 0)
			c := watched("view")
			c.LivenessProbe.FailureThreshold = 7
			w.apply(c)
		}, 0)
		if _, ok := w.m.Look(context.Background(), "app", Brief); ok {
			t.Error("seen although a reload came in between")
		}
		if _, ok := w.m.Look(context.Background(), "nobody", Brief); ok {
			t.Error("a target that does not exist is seen")
		}

		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return &view{} }
		c := watched("view")
		c.Instance.Socket = "/another"
		w.apply(c)
		look("b/1", false, "while the former stands in")
	})
}

// A reload that changes only how a target is restarted leaves the target as it is. Whether it is
// restarted at all decides how long a hold lasts.
func TestReloadOfRestartAlone(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		for _, c.Restart = range []*config.Restart{{}, nil, {}} {
			was := w.m.find("app")
			if w.apply(c); w.m.find("app") == was {
				t.Errorf("the target was kept although its restart is now %v", c.Restart)
			}
		}
		before := w.m.find("app")
		c.Restart = &config.Restart{DryRun: true}
		w.apply(c)
		if w.m.find("app") != before {
			t.Error("the target was replaced")
		}
		c.Labels = []config.Label{{Name: "a", Value: "b"}}
		w.apply(c)
		if w.m.find("app") == before {
			t.Error("the target was kept although its labels have changed")
		}
	})
}

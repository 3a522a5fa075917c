// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// A source runs from its first target to its last. The source hears of each target, and has
// ended when Apply or Close returns.
func TestSourcesComeAndGo(t *testing.T) {
	inView(t, func(w *world, v *view) {
		second := watched("view")
		second.Name = "second"
		w.apply(watched("view"), second)
		if up := w.m.Status(Brief).SourceUp; fmt.Sprint(up) != "map[view:true]" || v.runs != 1 {
			t.Errorf("up %v, %d runs", up, v.runs)
		}
		w.apply(labelled(watched("view"), "x"), second)
		v.mu.Lock()
		v.down = true
		v.mu.Unlock()
		w.apply(second, app("static", nil, every(time.Second), nil))
		if up := w.m.Status(Brief).SourceUp; fmt.Sprint(up) != "map[static:true view:false]" {
			t.Errorf("up %v", up)
		}
		w.apply(app("second", nil, every(time.Second), nil))
		if want := "+app +second +app -app -second "; v.watched != want || v.runs != 0 {
			t.Errorf("told %q, %d runs; want %q, 0", v.watched, v.runs, want)
		}
		w.apply(watched("view"))
		if v.runs != 1 {
			t.Errorf("%d runs, want 1", v.runs)
		}
		w.m.Close()
		if v.runs != 0 {
			t.Errorf("%d runs after Close", v.runs)
		}
	})
}

// runner is a view that runs commands inside the target.
type runner struct{ *view }

func (r runner) Runner() instance.Runner { return r }

func (r runner) Exec(_ context.Context, name string, command, _ []string, out io.Writer) (int, error) {
	_, err := fmt.Fprint(out, name, command)
	return 0, err
}

// If the source can run commands inside the target, an exec action uses the source.
func TestExecWhereTheTargetIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		v := &view{seen: map[string]gate.Instance{"app": runs("a")}}
		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return runner{v} }
		c := watched("view")
		c.StartupProbe.HTTPGet, c.StartupProbe.Exec = nil, &config.Exec{Command: []string{"check"}}
		w.apply(c)
		w.sleepUntil(500 * ms)
		if p := w.probe("app", gate.Startup); len(p.Attempts) != 1 || p.Attempts[0].Output != "app[check]" {
			t.Errorf("%+v", p.Attempts)
		}
	})
}

// The log mentions once that a source cannot go on. The source's last view stays.
func TestSourceThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		v := &view{seen: map[string]gate.Instance{"app": runs("a")}}
		w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return broken{v} }
		w.apply(watched("view"))
		w.sleepUntil(3 * time.Second)
		w.is("app", "SRL")
		if n := strings.Count(w.logged(), "an instance source has ended"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, w.logged())
		}
	})
}

type broken struct{ *view }

func (broken) Run(context.Context, func(string)) error { return errors.New("no more") }

// One log line says for all targets alike which source was chosen, and why. The status says so,
// too.
func TestSourceChosenIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		var targets []config.Target
		for i := range 12 {
			c := app(fmt.Sprintf("t%d", i), nil, every(time.Second), nil)
			c.Instance = config.Instance{Source: config.SourceStatic, Auto: true, Why: "no port"}
			targets = append(targets, c)
		}
		w.apply(targets...)
		w.apply(targets...)
		want := `msg="instance source chosen" source=static why="no port" count=12 targets=t0,t1,t2,t3,t4,t5,t6,t7,t8,t9`
		if strings.Count(w.logged(), "instance source chosen") != 1 || !strings.Contains(w.logged(), want+"\n") {
			t.Errorf("want one line with\n%s\ngot\n%s", want, w.logged())
		}
		if s, _ := w.m.Target("t11", Brief); s.SourceReason != "no port" {
			t.Errorf("%+v", s)
		}
	})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// tryAll tries targets in a bubble, whose actions are those of the world, and returns a line for
// each attempt.
func (w *world) tryAll(ctx context.Context, opts Options, targets ...config.Target) (lines []string) {
	if opts.NewAction = w.newAction; opts.NewSource == nil {
		opts.NewSource = func(*config.Instance, *slog.Logger) instance.Watcher {
			w.t.Error("the attempts need no source")
			return nil
		}
	}
	Try(ctx, &config.Config{Targets: targets}, opts, func(is Trial) {
		lines = append(lines, fmt.Sprintf("%s/%s %v %s %v %q", is.Target, is.Probe, is.Outcome, is.Reason, is.Duration, is.Output))
	})
	return lines
}

// Each probe makes a single attempt, in parallel with all others, and whatever its target waits
// for. An attempt that could not be made is repeated, as ever.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		c := watched("view") // a source that sees nothing
		c.ReadinessProbe.InitialDelay = time.Hour
		w.says("app/startup", bad)
		w.takes("app/readiness", 600*ms, action.Outcome{Success: true, Output: "\n ok\tthen \nmore"})
		w.on("app/liveness", func(context.Context) (action.Outcome, error) {
			time.Sleep(100 * ms)
			return action.Outcome{Reason: action.ExecStart}, fmt.Errorf("no\x00command")
		})
		got := w.tryAll(t.Context(), Options{}, c)
		want := []string{
			`app/startup failed connection_refused 0s "connection refused"`,
			`app/liveness unknown exec_start 300ms "no\\x00command"`,
			`app/readiness successful  600ms "ok then"`,
		}
		if !slices.Equal(got, want) || len(w.at("app/startup")) != 1 || len(w.at("app/readiness")) != 1 {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// No more attempts are in flight than in a running agent: with a limit of two, five attempts of
// 1 s take 3 s, and so they do for a single target.
func TestTryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		var targets []config.Target
		for i := range 5 {
			name := fmt.Sprintf("t%d", i)
			w.takes(name+"/readiness", time.Second, good)
			targets = append(targets, app(name, nil, every(time.Second), nil))
		}
		begin := time.Now()
		if got := w.tryAll(t.Context(), Options{MaxInFlight: 3}, targets...); len(got) != 5 {
			t.Errorf("%d lines, want 5", len(got))
		}
		// New probes may take three quarters of the limit.
		if took := time.Since(begin).Truncate(100 * ms); took != 3*time.Second {
			t.Errorf("took %v, want 3 s", took)
		}
	})
}

// An attempt that never ends is unknown after the time of its tries. When ctx is done, the others
// are cut short, and Try does not tell of them.
func TestTryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		endless := make(chan struct{})
		defer close(endless)
		w.on("app/readiness", func(context.Context) (action.Outcome, error) { <-endless; return good, nil })
		got := w.tryAll(t.Context(), Options{}, app("app", nil, every(time.Second), nil))
		if want := []string{`app/readiness unknown other 8s "the attempt does not end"`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		w.takes("cut/readiness", time.Hour, good)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if got := w.tryAll(ctx, Options{}, app("cut", nil, every(time.Second), nil)); got != nil || time.Since(begin) != time.Second {
			t.Errorf("%q after %v, want nothing after 1 s", got, time.Since(begin))
		}
	})
}

// A command of a target in a container runs there, once its source sees the container, and not
// more than five seconds later. Other probes need no source.
func TestTryInAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		c := watched(config.SourceDocker)
		c.StartupProbe = nil
		c.ReadinessProbe.HTTPGet, c.ReadinessProbe.Exec = nil, &config.Exec{Command: []string{"check"}}
		v := &view{seen: map[string]gate.Instance{}, down: true}
		opts := Options{NewSource: func(*config.Instance, *slog.Logger) instance.Watcher { return runner{v} }}
		time.AfterFunc(2*time.Second, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.down = false
		})
		begin := time.Now()
		got := w.tryAll(t.Context(), opts, c)
		if at := w.at("app/liveness"); len(at) != 1 || at[0] > 100*ms {
			t.Errorf("httpGet at %v, want one at once", at)
		}
		if want := []string{`app/liveness successful  0s ""`, `app/readiness successful  0s "app[check]"`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(begin); took < 2*time.Second || took > 2100*ms || v.runs != 0 {
			t.Errorf("took %v, want 2 s; %d runs of the source are left", took, v.runs)
		}
		v.down = true
		if w.tryAll(t.Context(), opts, c); time.Since(begin) < 7*time.Second || time.Since(begin) > 7200*ms {
			t.Errorf("a source that stays down: %v, want 5 s", time.Since(begin)-2*time.Second)
		}
		opts.NewSource = nil
		c.ReadinessProbe = every(time.Second)
		if got := w.tryAll(t.Context(), opts, c); len(got) != 2 {
			t.Errorf("without a command: %q", got)
		}
	})
}

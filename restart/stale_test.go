// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Just before an act the source is asked once more: an instance that has ended, was replaced, is
// being deleted or stopped, is paused, or is not seen is left alone. The drop is told once, however
// long it lasts, and is no restart to the back-off.
func TestStale(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *view)
		why    string
	}{
		"ended": {func(v *view) {
			v.sets("app", false, func(i *gate.Instance, _ *instance.Details) { i.Phase = gate.Terminated })
		}, "the verdict does not stand"},
		"replaced": {func(v *view) {
			v.sets("app", false, func(i *gate.Instance, _ *instance.Details) { i.ID = "b" })
		}, "replaced"},
		"deleted": {func(v *view) {
			v.sets("app", false, func(i *gate.Instance, _ *instance.Details) { i.Deleting = true })
		}, "being deleted"},
		"paused": {func(v *view) {
			v.sets("app", false, func(_ *gate.Instance, d *instance.Details) { d.Paused = true })
		}, "paused"},
		"being stopped": {func(v *view) {
			v.sets("app", false, func(_ *gate.Instance, d *instance.Details) { d.Stopping = time.Now().Add(-time.Minute) })
		}, "somebody is stopping"},
		"not seen": {func(v *view) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.blind["app"] = true
		}, "does not see"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t)
				w.view.looks(func() {
					if s, _ := w.m.Target("app", 0); !s.Live {
						c.change(&w.view)
						if name == "replaced" {
							w.says("app", "good")
						}
					}
				})
				w.says("app", "bad")
				w.sleep(time.Minute)
				w.want(0, "a minute later")
				s := w.status("app")
				if len(s.Acts) != 1 || s.Acts[0].Result != Stale || !strings.Contains(s.Acts[0].Message, c.why) || s.Counts.Stale != 1 {
					t.Errorf("got %+v, want one that is stale because %s", s, c.why)
				}
				if s.BackOffLeft != 0 || w.log.Count(`msg="restart dropped"`, c.why) != 1 {
					t.Errorf("back-off %v, log\n%s", s.BackOffLeft, w.log.String())
				}
				w.view.looks(nil)
				w.says("app", "bad")
				w.view.mu.Lock()
				w.view.blind["app"] = false
				w.view.mu.Unlock()
				w.view.runs("app", "c")
				w.sleep(3 * time.Second)
				w.want(1, "with another instance")
			})
		})
	}
}

// A reload that comes between the verdict and the act decides about the act.
func TestReloadBeforeTheAct(t *testing.T) {
	for name, change := range map[string]func(c *config.Target){
		"block away": func(c *config.Target) { c.Restart = nil },
		"dry run":    func(c *config.Target) { c.Restart.DryRun = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t)
				w.view.looks(func() {
					if s, _ := w.m.Target("app", 0); !s.Live {
						w.view.looks(nil)
						cfg := &config.Config{Targets: []config.Target{app("app", change)}}
						if err := w.m.Apply(cfg); err != nil {
							t.Error(err)
						}
						w.r.Apply(cfg)
					}
				})
				w.says("app", "bad")
				w.sleep(time.Minute)
				w.want(0, "after the reload")
			})
		})
	}
}

// The stop signal that an act of the agent itself has sent does not keep the agent from trying
// again; one that somebody sends afterwards does.
func TestOwnStopSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		stop := func() {
			w.view.sets("app", true, func(_ *gate.Instance, d *instance.Details) { d.Stopping = time.Now() })
		}
		w.does(func(context.Context, *request) error {
			stop()
			return errOfAgent
		})
		w.says("app", "bad")
		w.sleep(15 * time.Second)
		w.want(2, "after a failure that has sent the signal")
		stop()
		w.sleep(time.Hour)
		w.want(2, "after somebody else's signal")
	})
}

// An agent that was frozen between its last look and the act looks again.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		freeze := true
		w.finds(func() error {
			if freeze {
				time.Sleep(time.Minute)
			}
			freeze = false
			return nil
		})
		w.says("app", "bad")
		w.sleep(time.Minute + 2500*time.Millisecond)
		w.want(0, "right after the freeze")
		if s := w.status("app"); s.Counts != (Counts{Stale: 1}) || !strings.Contains(s.Acts[0].Message, "too old") {
			t.Errorf("got %+v", s)
		}
		w.sleep(time.Second)
		w.want(1, "a second later")
	})
}

// A panic in a handler makes the act fail, and the agent goes on.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.does(func(context.Context, *request) error { panic("a mistake") })
		w.says("app", "bad")
		w.sleep(15 * time.Second)
		w.want(2, "under the back-off")
		if s := w.status("app"); s.Counts != (Counts{Failed: 2}) || s.Acts[0].Message != "panic: a mistake" || w.log.Count("panic in an act", "restart.") != 2 {
			t.Errorf("got %+v, log\n%s", s, w.log.String())
		}
	})
}

// A handler may still find that there is nothing to do. As long as nothing was done, that is no
// restart to the back-off; a failure is, and so is what only comes out when it has begun.
func TestHandlerDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		checks := 0
		w.finds(func() error {
			checks++
			return fmt.Errorf("wrapped: %w", stale("the process has ended"))
		})
		w.says("app", "bad")
		w.sleep(5500 * time.Millisecond)
		w.want(0, "while there is nothing to do")
		if s := w.status("app"); s.BackOffLeft != 0 || s.Counts != (Counts{Stale: 1}) || checks != 4 || len(w.told) != 1 {
			t.Errorf("got %+v after %d checks, told %+v", s, checks, w.told)
		}
		w.finds(func() error { return errOfAgent })
		w.sleep(5 * time.Second)
		if s := w.status("app"); s.BackOffs != 1 || s.Counts != (Counts{Stale: 1, Failed: 1}) {
			t.Errorf("got %+v, want one that failed before it began, and a back-off", s)
		}
		if n := w.log.Count(`msg="restart failed"`, "reason=http_status", errOfAgent.Error()); n != 1 {
			t.Errorf("%d lines:\n%s", n, w.log.String())
		}
		w.finds(nil)
		w.does(func(context.Context, *request) error { return stale("the unit does not run") })
		w.sleep(32 * time.Second)
		if s := w.status("app"); s.BackOffs != 3 || s.Counts != (Counts{Stale: 3, Failed: 1}) {
			t.Errorf("got %+v, want two that were dropped after their beginning under the back-off", s)
		}
	})
}

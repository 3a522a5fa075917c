// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

func corrected(c *config.Target) {
	c.LivenessProbe.Exec = &config.Exec{Command: []string{"right"}}
	c.LivenessProbe.Period = 10 * time.Second
}

// A reload corrects a probe that failed although the application is well. The failures of the
// probe before restart nobody, whether the restart block was there before or comes with the reload.
func TestReloadCorrectsTheProbe(t *testing.T) {
	for name, block := range map[string]*config.Restart{"new": nil, "old": app("app").Restart} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.view.runs("app", "a")
				w.apply(app("app", func(c *config.Target) { c.Restart = block }))
				w.says("app", "bad")
				w.sleep(11 * time.Second) // an act, if there is a block; the next one is due in some seconds
				before := len(w.made())
				w.says("app", "good")
				w.apply(app("app", corrected))
				w.sleep(time.Hour)
				w.want(before, "after the correction")
			})
		})
	}
}

// After a reload of the probe or its thresholds, or one that brings the restart block, the result
// stays Failure, and the probe needs as many failures as its failureThreshold for an act.
func TestReloadBeginsTheVerdictAnew(t *testing.T) {
	for name, change := range map[string]func(*config.Target){
		"action":    func(c *config.Target) { c.LivenessProbe.Exec = &config.Exec{Command: []string{"other"}} },
		"threshold": func(c *config.Target) { c.LivenessProbe.FailureThreshold = 5 },
		"block":     func(*config.Target) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.view.runs("app", "a")
				w.apply(app("app", func(c *config.Target) { c.Restart = nil }))
				w.says("app", "bad")
				w.sleep(time.Minute)
				c := app("app", change)
				w.apply(c)
				w.sleep(time.Duration(c.LivenessProbe.FailureThreshold-2)*c.LivenessProbe.Period + c.LivenessProbe.Period/2)
				w.want(0, "before the threshold")
				w.sleep(2 * c.LivenessProbe.Period)
				w.want(1, "at the threshold")
			})
		})
	}
}

// An application that recovers while the act waits for the limit or the back-off is not
// restarted: attempts go on, and a success withdraws the verdict, be it that of the liveness or of
// the startup probe.
func TestVerdictIsWithdrawn(t *testing.T) {
	for name, kind := range map[string]func(*config.Target){
		"liveness": func(*config.Target) {},
		"startup":  func(c *config.Target) { c.StartupProbe, c.LivenessProbe = c.LivenessProbe, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t, kind, func(c *config.Target) { c.Restart.Limit = config.Limit{Restarts: 1, Window: time.Hour} })
				w.does(func(context.Context, *request) error {
					w.view.runs("app", "b")
					return nil
				})
				w.says("app", "bad")
				w.view.runs("app", "a2") // the startup probe has succeeded for the first instance
				w.sleep(time.Minute)
				w.want(1, "at first")
				if s, _ := w.m.Target("app", prober.Brief); s.Live || s.Probes[0].Held {
					t.Fatalf("live: %t, held: %t; want a Failure without a hold", s.Live, s.Probes[0].Held)
				}
				w.says("app", "good")
				w.sleep(2 * time.Hour)
				w.want(1, "after the recovery")
			})
		})
	}
}

// An application that recovers while the handler looks at it is left alone.
func TestVerdictIsWithdrawnBeforeTheAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.finds(func() error {
			w.says("app", "good")
			time.Sleep(2 * time.Second)
			return nil
		})
		w.says("app", "bad")
		w.sleep(time.Minute)
		w.want(0, "after the recovery")
		if got := w.status("app").Acts; len(got) != 1 || got[0].Result != Stale || got[0].Message != string(withdrawn) {
			t.Errorf("acts: %+v", got)
		}
	})
}

// A reload takes up to a second, and no act begins by the former file meanwhile: neither one that
// is due then, nor one whose handler looks at the target when the reload begins.
func TestNoActDuringAReload(t *testing.T) {
	for name, look := range map[string]time.Duration{"due": 0, "looking": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t)
				w.finds(func() error {
					time.Sleep(look)
					return nil
				})
				w.says("app", "bad")
				w.sleep(3*time.Second + look)
				w.want(1, "before")
				w.sleep(8*time.Second + 500*time.Millisecond + look) // the next one is due in 0.5 s, or looks for that long
				w.r.Suspend()
				w.sleep(time.Second)
				w.want(1, "during a reload")
				if got := w.status("app").Counts.Stale; look == 0 && got > 0 {
					t.Errorf("%d acts were dropped; want none to be tried", got)
				}
				w.r.Apply(&config.Config{Targets: []config.Target{app("app", func(c *config.Target) { c.Restart.DryRun = true })}})
				w.sleep(time.Minute)
				w.want(1, "after a reload that asks for a dry run")
			})
		})
	}
}

// After a reload that fails, acts go on.
func TestActsAfterAReloadThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.r.Suspend()
		w.says("app", "bad")
		w.sleep(time.Minute)
		w.want(0, "during the reload")
		w.r.Resume()
		w.sleep(5 * time.Second)
		w.want(1, "after it")
	})
}

// Two targets are one instance, which is restarted once: the act for one of them, and the back-off
// after it, make the other wait. This is so although both verdicts come at the same moment.
func TestTargetsOfOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.view.runs("http", "a")
		w.view.runs("grpc", "a")
		w.apply(app("http"), app("grpc"))
		w.sleep(time.Minute)
		w.says("http", "bad")
		w.says("grpc", "bad")
		w.does(func(context.Context, *request) error {
			time.Sleep(20 * time.Second) // a drain
			return nil
		})
		w.sleep(30 * time.Second) // until shortly before the end of the back-off
		w.want(1, "of one instance")
		w.sleep(30 * time.Second)
		w.want(2, "after the back-off")
	})
}

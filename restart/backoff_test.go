// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// An act that fails is tried again under the back-off, and so is one that changes nothing: at 0,
// 10, 30, 70, 150, 310 and then every 300 s. While one waits the status says until when.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.does(func(context.Context, *request) error { return errOfAgent })
		w.says("app", "bad")
		w.sleep(2*time.Second + 75*time.Second)
		w.want(4, "75 s after the verdict")
		s := w.status("app")
		if s.BackOffs != 4 || s.BackOff != 80*time.Second || s.BackOffLeft != s.Left || !s.Wanted || !s.NotBefore.Equal(time.Now().Add(s.Left)) ||
			s.Left < 74*time.Second || s.Left > 76*time.Second {
			t.Errorf("got %+v, want about 75 s of the fourth back-off", s)
		}
		w.sleep(time.Hour)
		var waits []time.Duration
		made := w.made()
		for i := range made[1:] {
			waits = append(waits, made[i+1].at-made[i].at)
		}
		want := "[10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s 5m0s 5m0s 5m0s 5m0s 5m0s 5m0s 5m0s 5m0s]"
		if got := fmt.Sprint(waits); got != want {
			t.Errorf("waits %v, want %v", got, want)
		}
		if s := w.status("app"); len(s.Acts) != maxActs || s.Counts.Failed != uint64(len(made)) || s.Acts[9].Message != errOfAgent.Error() {
			t.Errorf("got %d acts, counts %+v of %d", len(s.Acts), s.Counts, len(made))
		}
		if n := w.log.Count("level=ERROR", `msg="restart failed"`, "target=app", errOfAgent.Error()); n != len(made) {
			t.Errorf("%d lines of %d failures", n, len(made))
		}
	})
}

// An agent that has just started waits for the initial back-off; a target that a reload adds
// later does not.
func TestFirstAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.says("app", "bad")
		w.says("new", "bad")
		w.view.runs("app", "a")
		w.view.runs("new", "n")
		w.apply(app("app"))
		w.sleep(5 * time.Second)
		s := w.status("app")
		if s.Left != 5*time.Second || !s.Wanted || s.BackOffs != 0 {
			t.Errorf("got %+v, want 5 s of the wait of a new agent", s)
		}
		w.sleep(4999 * time.Millisecond)
		w.want(0, "before 10 s")
		w.sleep(time.Millisecond)
		w.want(1, "at 10 s")
		w.sleep(time.Minute)
		n := len(w.made())
		w.apply(app("app"), app("new"))
		w.sleep(2100 * time.Millisecond)
		if made := w.made(); len(made) != n+1 || made[n].target != "new" {
			t.Errorf("got %+v, want the new target at once", made[n:])
		}
	})
}

// The back-off survives reloads: of the probes, of the labels, of the block itself, and of a block
// that is taken out and put back in.
func TestBackOffSurvivesReloads(t *testing.T) {
	change := func(f func(c *config.Target)) func(w *world) {
		return func(w *world) { w.apply(app("app", f)) }
	}
	for name, reload := range map[string]func(w *world){
		"equal": change(func(*config.Target) {}),
		"probe": change(func(c *config.Target) { c.LivenessProbe.FailureThreshold, c.LivenessProbe.Period = 1, time.Second/2 }),
		"kind": change(func(c *config.Target) {
			c.StartupProbe = &config.Probe{Exec: &config.Exec{Command: []string{"x"}}, Period: time.Second, FailureThreshold: 1, SuccessThreshold: 1}
		}),
		"labels":  change(func(c *config.Target) { c.Labels = []config.Label{{Name: "a", Value: "b"}} }),
		"handler": change(func(c *config.Target) { c.Restart.Exec = &config.Exec{Command: []string{"false"}} }),
		"taken out": func(w *world) {
			w.apply(app("app", func(c *config.Target) { c.Restart = nil }))
			w.apply()
			w.apply(app("app"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t)
				w.says("app", "bad")
				w.sleep(15 * time.Second) // acts at 2 and 12 s
				w.want(2, "before the reload")
				second := w.made()[1].at
				for range 5 {
					reload(w)
					w.sleep(3 * time.Second)
				}
				w.want(2, "15 s after the reload")
				w.sleep(time.Minute)
				if third := w.made()[2].at; third-second < 20*time.Second || third-second > 22*time.Second {
					t.Errorf("the third is %v after the second, want 20s", third-second)
				}
			})
		})
	}
}

// With the limit spent nothing is done until the window has passed, and the status says so.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t, func(c *config.Target) { c.Restart.Limit = config.Limit{Restarts: 2, Window: time.Hour} })
		w.says("app", "bad")
		w.sleep(time.Minute)
		w.want(2, "with a limit of 2")
		s := w.status("app")
		first := w.begin.Add(w.made()[0].at)
		if !s.Limited || !s.LimitedUntil.Equal(first.Add(time.Hour)) || !s.NotBefore.Equal(s.LimitedUntil) || s.Limit.Restarts != 2 {
			t.Errorf("got %+v, want a limit spent until %v", s, first.Add(time.Hour))
		}
		w.sleep(time.Until(first.Add(time.Hour)) - time.Nanosecond)
		w.want(2, "until the window has passed")
		w.sleep(time.Nanosecond)
		w.want(3, "after that")
	})
}

// A dry run does all but the act: it logs and counts, with back-off and limit.
func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t, func(c *config.Target) {
			c.Restart.DryRun = true
			c.Restart.Limit = config.Limit{Restarts: 3, Window: time.Hour}
		})
		w.says("app", "bad")
		w.sleep(time.Minute)
		w.want(0, "in a dry run")
		s := w.status("app")
		if s.Counts != (Counts{DryRun: 3}) || !s.Limited || !s.DryRun || s.BackOffs != 3 || s.Acts[0].Message != "would write it down" {
			t.Errorf("got %+v", s)
		}
		if n := w.log.Count(`msg="dry run: the target would be restarted"`, "target=app", "instance_id=a", "reason=http_status", "attempt=2/2"); n != 3 {
			t.Errorf("%d lines, want 3:\n%s", n, w.log.String())
		}
	})
}

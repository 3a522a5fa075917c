// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Nothing is done once the pod terminates, by the word of the preStop hook or by the watch of the
// pod; nor once the agent stops. A reload changes nothing about that.
func TestQuiet(t *testing.T) {
	pod := app("pod", func(c *config.Target) {
		c.Instance = config.Instance{Source: config.SourceKubernetes, Container: "pod"}
		c.Restart = nil
	})
	for name, end := range map[string]func(w *world){
		"hook": func(w *world) { w.m.Terminate() },
		"watch": func(w *world) {
			w.view.sets("pod", true, func(i *gate.Instance, _ *instance.Details) { i.Deleting = true })
		},
		"during the look": func(w *world) {
			w.view.looks(w.m.Terminate)
		},
		"stopping": func(w *world) { w.r.Stop() },
		"stopped":  func(w *world) { w.m.Stop() },
	} {
		for when, failing := range map[string]bool{"before": false, "in the back-off": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.view.runs("app", "a")
					w.view.runs("pod", "p")
					w.apply(app("app"), pod)
					w.sleep(time.Minute)
					want := 0
					if failing {
						w.says("app", "bad")
						w.sleep(5 * time.Second)
						want = 1
					}
					end(w)
					w.says("app", "bad")
					w.sleep(time.Minute)
					w.want(want, "after the end")
					if w.status("app").Wanted {
						t.Error("another act is announced")
					}
					if name != "stopped" { // then there are no more reloads
						w.apply(app("app", func(c *config.Target) { c.LivenessProbe.FailureThreshold = 1 }), pod)
						w.sleep(time.Hour)
						w.want(want, "after a reload")
					}
				})
			})
		}
	}
}

// An application that drains is not signalled a second time: an act that is under way when the
// pod begins to terminate is cut short.
func TestTerminateCutsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.does(func(ctx context.Context, _ *request) error {
			<-ctx.Done()
			return ctx.Err()
		})
		w.says("app", "bad")
		w.sleep(3 * time.Second)
		if w.status("app").Current == nil {
			t.Fatal("no act is under way")
		}
		w.m.Terminate()
		synctest.Wait()
		if s := w.status("app"); s.Current != nil || s.Counts.Failed != 1 {
			t.Errorf("got %+v, want an act that was cut short", s)
		}
	})
}

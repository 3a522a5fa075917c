// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// list gives a target three liveness probes a, b and c, which fail after 2 s, in place of its own.
func list(require int, more ...func(*config.Probe)) func(*config.Target) {
	return func(t *config.Target) {
		var members []*config.Probe
		for _, name := range []string{"a", "b", "c"} {
			p := *t.LivenessProbe
			p.Name = name
			for _, m := range more {
				m(&p)
			}
			members = append(members, &p)
		}
		t.LivenessProbe = nil
		t.Several = &[gate.NumKinds]config.Probes{gate.Liveness: {Require: require, Members: members}}
	}
}

// The agent restarts an instance as soon as so many members of a list have failed that the required
// number cannot be met, and not before. The act names the member that failed last.
func TestVerdictOfAList(t *testing.T) {
	for _, tt := range []struct {
		require int
		fail    string // the members that fail, in their order
	}{{3, "b"}, {2, "ba"}, {2, "ac"}, {1, "cab"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.view.runs("app", "1")
			w.apply(app("app", list(tt.require)))
			w.sleep(time.Minute)
			for i, member := range strings.Split(tt.fail, "") {
				w.want(0, "before enough members have failed")
				if w.status("app").Wanted || i > 0 && !w.live() {
					t.Fatalf("require %d: a verdict by %s", tt.require, tt.fail[:i])
				}
				w.says("app/"+member, "bad")
				w.sleep(10 * time.Second)
			}
			w.want(1, "once enough members have failed")
			last := tt.fail[len(tt.fail)-1:]
			if acts := w.status("app").Acts; len(acts) != 1 || acts[0].Probe != last || acts[0].Failures < 2 || acts[0].Reason == "" {
				t.Errorf("require %d, %s fail: %+v", tt.require, tt.fail, acts)
			}
			if !strings.Contains(w.log.String(), "probe_type=Liveness probe="+last+" reason=http_status attempt=2/2 handler=exec") {
				t.Error(w.log.String())
			}
		})
	}
}

func (w *world) live() bool {
	s, _ := w.m.Target("app", 0)
	return s.Live
}

// A member that recovers while the act waits withdraws the verdict of the list.
func TestVerdictOfAListIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.view.runs("app", "1")
		w.apply(app("app", list(1)))
		w.says("app", "bad") // before the initial back-off of 10 s is over
		w.sleep(5 * time.Second)
		if !w.status("app").Wanted || w.live() {
			t.Fatal("no verdict while all members fail")
		}
		w.says("app/b", "good")
		w.sleep(time.Hour)
		w.want(0, "after one of the members has recovered")
		if w.status("app").Wanted || !w.live() {
			t.Error("the verdict stands")
		}
	})
}

// A reload that makes a list demand more restarts nobody because of the failures before. The
// member must fail as often as its threshold says once more.
func TestReloadOfAListBeginsTheVerdictAnew(t *testing.T) {
	for name, before := range map[string]func(*config.Target){
		"require":      list(1),
		"single probe": func(*config.Target) {},
		"fewer members": func(c *config.Target) {
			list(3)(c)
			c.Several[gate.Liveness].Members = c.Several[gate.Liveness].Members[1:]
			c.Several[gate.Liveness].Require = 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.view.runs("app", "1")
				w.apply(app("app", before))
				w.says("app/a", "bad")
				w.sleep(time.Minute + time.Second/2)
				w.want(0, "before the reload")
				w.apply(app("app", list(3)))
				if !w.live() || w.status("app").Wanted {
					t.Error("the reload alone makes the target not live")
				}
				w.sleep(900 * time.Millisecond)
				w.want(0, "after one failure")
				w.sleep(2 * time.Second)
				w.want(1, "after as many failures as the threshold")
			})
		})
	}
}

// The member that failed last decides over the grace period.
func TestGracePeriodOfAList(t *testing.T) {
	seven := int64(7)
	for last, want := range map[string]time.Duration{"a": 30 * time.Second, "b": 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.view.runs("app", "1")
			w.apply(app("app", list(2, func(p *config.Probe) {
				if p.Name == "b" {
					p.TerminationGracePeriodSeconds = &seven
				}
			})))
			grace := time.Duration(0)
			w.does(func(_ context.Context, q *request) error {
				grace = q.grace
				return nil
			})
			w.sleep(time.Minute)
			w.says(map[string]string{"a": "app/b", "b": "app/a"}[last], "bad")
			w.sleep(10 * time.Second)
			w.says("app/"+last, "bad")
			w.sleep(10 * time.Second)
			if w.want(1, "after two failures"); grace != want {
				t.Errorf("%s failed last: %v, want %v", last, grace, want)
			}
		})
	}
}

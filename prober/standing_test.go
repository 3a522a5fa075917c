// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

var silent = action.Outcome{Reason: action.Timeout}

// hangs returns n targets that hang for 10 s each time, with hardly a pause between attempts.
func (w *world) hangs(n int) (targets []config.Target) {
	for i := range n {
		name := fmt.Sprintf("hangs%d", i)
		p := every(time.Second)
		p.Timeout = 10 * time.Second
		w.takes(name+"/liveness", p.Timeout, silent)
		targets = append(targets, app(name, nil, nil, p))
	}
	return targets
}

// Eight slots serve twenty targets that hang for 10 s. The agent makes an attempt at each other
// target every second from its first answer on. A target that begins to hang fails at once. The
// hanging targets share the remaining turns equally.
func TestHangingTakeHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 8, files: 100})
		targets := w.hangs(20)
		for _, name := range []string{"a", "b", "c"} {
			targets = append(targets, app(name, nil, nil, every(time.Second)))
		}
		w.apply(targets...)
		w.sleepUntil(time.Minute)
		known := max(w.at("a/liveness")[0], w.at("b/liveness")[0], w.at("c/liveness")[0])
		for _, name := range []string{"a", "b", "c"} {
			at := w.at(name + "/liveness")
			if due := int((time.Minute - at[0]) / time.Second); len(at) < due {
				t.Errorf("%s: %d attempts since %v, want %d", name, len(at), at[0], due)
			}
		}
		if most := 40 * time.Second; known > most { // twenty times 10 s in six slots
			t.Errorf("the last target that answers was attempted after %v, want %v at most", known, most)
		}

		w.takes("b/liveness", time.Second, silent)
		w.sleepUntil(65 * time.Second)
		w.is("b", "SRl") // three times a second
		w.is("a", "SRL")

		w.sleepUntil(10 * time.Minute)
		if got := w.m.slots.used[hanging].attempts; got != 4 {
			t.Errorf("%d attempts in flight at targets that hang, want half of 8", got)
		}
		counts := make([]int, 20)
		for i := range counts {
			counts[i] = len(w.at(fmt.Sprintf("hangs%d/liveness", i)))
		}
		if least, most := slices.Min(counts), slices.Max(counts); least < 10 || most-least > 2 {
			t.Errorf("targets that hang were attempted %d to %d times in ten minutes, want 10 at least and 2 apart", least, most)
		}
	})
}

// Attempts may wait for minutes for others that hang. A new start of the agent would mend
// nothing, so the waiting attempts are not overdue.
func TestHangingAreNotOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 2, files: 100})
		w.apply(w.hangs(20)...)
		for at := 30 * time.Second; at < 10*time.Minute; at += 7 * time.Second {
			w.sleepUntil(at)
			if got := w.m.Overdue(); got != nil {
				t.Fatalf("after %v: %q overdue, want none", at, got)
			}
		}
		if n := len(w.at("hangs0/liveness")); n < 2 {
			t.Errorf("%d attempts in ten minutes, want 2 at least", n)
		}
	})
}

// A new target need not wait while hanging targets have taken all their slots. Neither need a
// target whose instance was restarted while the target waited or during an attempt.
func TestNewAmongHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 8, files: 100})
		targets := w.hangs(20)
		w.apply(targets...)
		w.sleepUntil(5 * time.Minute)
		w.apply(append(targets, app("new", nil, nil, every(time.Second)))...)
		w.sleepUntil(5*time.Minute + time.Second)
		if got := len(w.at("new/liveness")); got == 0 {
			t.Error("the new target has not been attempted in its first second")
		}

		for _, c := range []struct {
			stage  stage
			within time.Duration
		}{{waiting, 0}, {acting, 11 * time.Second}} {
			name := w.atStage(c.stage)
			w.says(name+"/liveness", good)
			before := len(w.at(name + "/liveness"))
			w.m.NewInstance(name)
			w.sleepUntil(time.Since(w.begin) + c.within)
			if got := len(w.at(name + "/liveness")); got == before {
				t.Errorf("no attempt within %v at a target whose instance was restarted at stage %d", c.within, c.stage)
			}
		}
	})
}

// atStage returns the name of the last target whose liveness turn is at stage s.
func (w *world) atStage(s stage) (name string) {
	w.t.Helper()
	for _, t := range w.m.list() {
		t.mu.Lock()
		if t.workers[0].stage == s {
			name = t.cfg.Name
		}
		t.mu.Unlock()
	}
	if name == "" {
		w.t.Fatalf("no target is at stage %d", s)
	}
	return name
}

// If a turn must wait again when its slot has come, the turn gives its slot back.
func TestDelayedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		w.m.slots = newSlots(load{attempts: 1, files: 1})
		other := claim{target: new(target), files: 1}
		w.m.slots.tryAcquire(other)
		p := every(time.Second)
		p.InitialDelay = 2 * time.Second
		w.apply(app("app", nil, nil, p))
		w.sleepUntil(5 * time.Second)
		w.atStage(waiting)
		w.m.NewInstance("app")
		w.m.slots.release(other)
		synctest.Wait()
		if got := w.at("app/liveness"); len(got) != 0 {
			t.Errorf("attempts at %v, before the delay of the new instance", got)
		}
		(&queue{t: t, slots: w.m.slots}).empty()
		w.sleepUntil(8 * time.Second)
		if got := w.at("app/liveness"); len(got) == 0 {
			t.Error("no attempt after the delay")
		}
	})
}

// A reload that changes the period of a probe gives a hanging target no advantage over others.
// A reload that changes the action makes the target new.
func TestStandingOverReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		standingIs := func(want standing) {
			t.Helper()
			target := w.m.find("app")
			target.mu.Lock()
			defer target.mu.Unlock()
			if got := target.workers[0].standing; got != want {
				t.Errorf("standing %d, want %d", got, want)
			}
		}
		p := every(time.Second)
		w.says("app/liveness", silent)
		w.apply(app("app", nil, nil, p))
		w.sleepUntil(10*time.Second + 500*ms)
		standingIs(stuck)
		slower := *p
		slower.Period = time.Hour
		w.takes("app/liveness", time.Hour, silent)
		w.apply(app("app", nil, nil, &slower))
		standingIs(stuck)
		other := slower
		other.HTTPGet = &config.HTTPGet{Port: config.PortRef{Number: 81}}
		w.apply(app("app", nil, nil, &other))
		standingIs(fresh)
	})
}

// Each sort of attempt changes the standing as the table says.
func TestStanding(t *testing.T) {
	refused := tried{Outcome: bad}
	for _, c := range []struct {
		what   string
		before standing
		made   tried
		took   time.Duration
		want   standing
	}{
		{"an answer", stuck, tried{Outcome: good}, time.Millisecond, settled},
		{"a failure that comes at once", 2, refused, time.Millisecond, settled},
		{"a timeout, however short", settled, tried{Outcome: silent}, 100 * ms, 1},
		{"another timeout", 1, tried{Outcome: silent}, time.Second, 2},
		{"the third", 2, tried{Outcome: silent}, time.Second, stuck},
		{"the fourth", stuck, tried{Outcome: silent}, time.Second, stuck},
		{"an answer after a second", settled, tried{Outcome: good}, time.Second, 1},
		{"the agent was late", 2, tried{Outcome: action.Outcome{Reason: action.AgentLate}, err: errPanic}, time.Minute, 2},
		{"no attempt", fresh, tried{err: errors.New("no file")}, 0, fresh},
		{"the first of all", fresh, tried{Outcome: silent}, time.Second, stuck},
		{"an attempt that could not be finished", settled, tried{err: errors.New("no file")}, time.Minute, 1},
	} {
		if got := c.before.after(&c.made, c.took); got != c.want {
			t.Errorf("%s: %d after %d, want %d", c.what, got, c.before, c.want)
		}
	}
	for s, want := range map[standing]class{settled: answering, 1: doubtful, fresh: doubtful, stuck: hanging} {
		if got := s.class(); got != want {
			t.Errorf("standing %d is class %d, want %d", s, got, want)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// news returns what a subscription tells its reader: "" for nothing, "all", or names.
func news(s *Subscription) string {
	select {
	case <-s.C:
	default:
		return ""
	}
	c := s.Changes()
	if c.All {
		return strings.Join(append([]string{"all"}, c.Targets...), " ")
	}
	return strings.Join(c.Targets, " ")
}

// kept returns how many names the subscription keeps for its reader.
func (s *Subscription) kept() int {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return len(s.targets)
}

func (w *world) tells(s *Subscription, what, want string) {
	w.t.Helper()
	synctest.Wait()
	if got := news(s); got != want {
		w.t.Errorf("%v: %s: the subscription tells %q, want %q", time.Since(w.begin), what, got, want)
	}
}

// A subscription tells of every change of a condition, a result, a hold or an instance, and of
// no attempt that changes none of them.
func TestSubscriptionTellsEachChange(t *testing.T) {
	inView(t, func(w *world, v *view) {
		s := w.m.Subscribe()
		defer s.Close()
		runners := w.m.Subscribe(Runs)
		w.tells(s, "a new reader", "all")
		w.says("app/startup", bad)
		v.sees(runs("a"))
		w.tells(s, "the first instance", "app")
		w.says("app/startup", good)
		w.sleepUntil(1100 * ms)
		w.is("app", "SRL")
		w.tells(s, "started and ready", "app")
		w.sleepUntil(20 * time.Second)
		w.tells(s, "20 s of equal attempts", "")
		w.tells(runners, "all of that, to a reader who is interested in runs", "all")
		w.says("app/liveness", bad)
		w.sleepUntil(21500 * ms)
		w.tells(s, "a failure below the threshold", "")
		w.tells(runners, "a run of failures has begun", "app")
		w.sleepUntil(22500 * ms)
		w.tells(runners, "the run goes on", "")
		runners.Close()
		w.says("app/liveness", good)
		w.sleepUntil(23500 * ms)
		w.says("app/liveness", bad)
		w.sleepUntil(24500 * ms)
		w.tells(runners, "another run, after the end of the subscription", "")
		w.tells(s, "two runs below the threshold", "")
		w.sleepUntil(28 * time.Second)
		w.is("app", "SRl")
		w.tells(s, "not live", "app")

		frozen := v.Instance("app")
		frozen.Phase = gate.PhaseUnknown
		v.sees(frozen)
		w.tells(s, "frozen", "app")
		v.sees(runs("a"))
		w.tells(s, "runs on", "app")
		w.says("app/liveness", good)
		v.sees(runs("b"))
		w.tells(s, "a restart", "app")
		bounded := runs("b")
		bounded.MaxHold = time.Hour
		v.sees(bounded)
		w.tells(s, "news of the same instance", "app")
		w.sleepUntil(30 * time.Second)
		w.tells(s, "ready again", "")
		w.m.NewInstance("app")
		w.tells(s, "a restart that was declared", "app")

		w.says("other/readiness", bad)
		w.apply(watched("view"), app("other", nil, every(time.Second), nil))
		w.tells(s, "a target that was added", "all")
		w.says("other/readiness", good)
		w.sleepUntil(40 * time.Second)
		w.tells(s, "it is ready", "other")
		w.apply(watched("view"))
		w.tells(s, "a target that was removed", "all")
		w.m.Terminate()
		w.tells(s, "Terminate", "all")
		w.m.Stop()
		w.tells(s, "Stop", "all")
		w.m.Close()
		w.tells(s, "Close, which changes nothing", "")
	})
}

// A subscription tells when a hold begins or ends, even if nothing else changes.
func TestSubscriptionTellsHolds(t *testing.T) {
	inView(t, func(w *world, v *view) {
		c := watched("view")
		c.StartupProbe, c.ReadinessProbe = nil, nil
		w.apply(c)
		w.says("app/liveness", bad)
		bounded := runs("a")
		bounded.MaxHold = 10 * time.Second
		v.sees(bounded)
		w.sleepUntil(5 * time.Second)
		s := w.m.Subscribe()
		defer s.Close()
		w.tells(s, "a new reader", "all")
		p := w.probe("app", gate.Liveness)
		if !p.Held {
			t.Fatalf("%+v, want held", p)
		}
		ends := p.HeldUntil.Sub(w.begin)
		w.sleepUntil(ends - ms)
		w.tells(s, "on hold", "")
		w.sleepUntil(ends + ms)
		w.is("app", "SRl")
		w.tells(s, "the hold has ended", "app")
		w.sleepUntil(ends + 5*time.Second)
		w.is("app", "SRl")
		w.tells(s, "a hold has begun again", "app")
	})
}

// Several changes before the reader asks count as one. A change after the reader has asked
// counts as another, even if the reader has not read yet.
func TestSubscriptionCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		names := []string{"a", "b", "c"}
		for _, name := range names {
			w.says(name+"/readiness", bad)
		}
		w.apply(app("a", nil, every(time.Second), nil), app("b", nil, every(time.Second), nil), app("c", nil, every(time.Second), nil))
		s := w.m.Subscribe()
		defer s.Close()
		w.tells(s, "a new reader", "all")
		for i := range 10 { // changes between ready and not ready five times
			for _, name := range names[1:] {
				w.says(name+"/readiness", []action.Outcome{good, bad}[i%2])
			}
			time.Sleep(5 * time.Second)
		}
		w.tells(s, "two targets, many changes", "b c")
		w.tells(s, "nothing since", "")

		w.says("a/readiness", good)
		time.Sleep(time.Second)
		synctest.Wait()
		<-s.C
		if got := s.Changes(); !slices.Equal(got.Targets, names[:1]) {
			t.Errorf("the subscription tells %v, want a", got)
		}
		w.says("b/readiness", good) // while the reader is about to read
		time.Sleep(time.Second)
		w.tells(s, "a change after the question", "b")

		w.says("c/readiness", good)
		time.Sleep(time.Second)
		synctest.Wait()
		<-s.C
		w.says("b/readiness", bad) // while the reader is about to ask
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := s.Changes(); !slices.Equal(got.Targets, names[1:]) {
			t.Errorf("the subscription tells %v, want b and c", got)
		}
		w.tells(s, "nothing since", "")
	})
}

// A reader that never reads, or that has closed its subscription, makes nobody wait. Its
// subscription keeps no more names than the configuration has targets, whatever reloads bring.
func TestSubscriptionOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		asleep, closed, reader := w.m.Subscribe(), w.m.Subscribe(), w.m.Subscribe()
		closed.Close()
		closed.Close()
		if got := w.m.subscriptions.count.Load(); got != 2 {
			t.Fatalf("%d subscriptions, want 2", got)
		}
		for i := range 50 {
			a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
			w.says(a+"/readiness", bad)
			w.says(b+"/readiness", bad)
			w.apply(app(a, nil, every(time.Second), nil), app(b, nil, every(time.Second), nil))
			w.tells(reader, "a reload", "all")
			if i == 0 {
				asleep.Changes() // without a call, the subscription would keep no names
			}
			w.says(a+"/readiness", good)
			w.says(b+"/readiness", good)
			time.Sleep(3 * time.Second)
			if n := asleep.kept(); n > 2 {
				t.Fatalf("the subscription keeps %d names, want 2 at most", n)
			}
		}
		if w.tells(closed, "a closed subscription", ""); closed.kept() > 0 {
			t.Error("a closed subscription keeps names")
		}
		reader.Close()
		asleep.Close()
		if got := w.m.subscriptions.count.Load(); got != 0 {
			t.Errorf("%d subscriptions, want none", got)
		}
	})
}

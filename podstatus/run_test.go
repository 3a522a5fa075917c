// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// The first word comes 100 ms after the beginning. A change is written 10 ms later: what comes
// and goes within that time is no patch. The next patch begins 100 ms after the one before, and
// has the latest state.
func TestChangesAreCollected(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		w.takes(100*ms, saysTrue)
		w.is(true, 1, 0)
		w.sleepUntil(2000 * ms)
		w.prober.set(notReady("shop"))
		w.sleepUntil(2005 * ms)
		w.prober.set(isReady("shop"))
		w.sleepUntil(3000 * ms)
		w.is(true, 1, 0)
		w.prober.set(notReady("shop"))
		w.takes(3010*ms, saysFalse)
		w.sleepUntil(3050 * ms)
		w.prober.set(isReady("shop"))
		w.sleepUntil(3080 * ms)
		w.prober.set(notReady("shop"))
		w.sleepUntil(3105 * ms)
		w.prober.set(isReady("shop"))
		w.takes(3110*ms, saysTrue)
		w.sleepUntil(3150 * ms)
		w.prober.set(notReady("shop"))
		w.sleepUntil(3205 * ms)
		w.prober.set(isReady("shop"))
		w.quiet(time.Second)
		w.is(true, 3, 0)
	})
}

// While a patch waits for its answer nothing else is written, and then the latest state alone.
func TestLatestStateOnly(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		c, first := w.patched(100*ms, saysTrue)
		for range 3 {
			w.prober.set(notReady("shop"))
			w.quiet(200 * ms)
			w.prober.set(isReady("shop"))
			w.quiet(200 * ms)
		}
		w.prober.set(notReady("shop"))
		w.sleepUntil(5 * time.Second)
		c.Answer(200, podWith(cond(shopReady, "True", "ProbesSucceeding", "", first[0].LastTransitionTime)))
		last := w.takes(5010*ms, saysFalse)
		if at := last[0].LastTransitionTime; !at.Equal(w.begin.Add(5 * time.Second)) {
			t.Errorf("lastTransitionTime %v, want that of the write in whole seconds", at)
		}
		w.quiet(time.Minute)
	})
}

// What the watch shows is compared every 10 s: a condition of another status, or none, is
// written again, and an equal one is not. lastTransitionTime moves with the status
// alone.
func TestReconcile(t *testing.T) {
	inBubble(t, func(w *world) {
		watch := w.on()
		was := w.takes(100*ms, saysTrue)[0]
		watch.Event("MODIFIED", podWith(cond(shopReady, "False", "Meddling", "", w.begin)))
		w.is(true, 1, 0)
		again := w.takes(10*time.Second, saysTrue)[0]
		if !again.LastTransitionTime.Equal(w.begin.Add(10 * time.Second)) {
			t.Errorf("the status was changed, lastTransitionTime is %v", again.LastTransitionTime)
		}
		watch.Event("MODIFIED", podWith())
		gone := w.takes(20*time.Second, saysTrue)[0]
		if gone.LastTransitionTime != again.LastTransitionTime {
			t.Errorf("the condition was removed, lastTransitionTime is %v, was %v", gone.LastTransitionTime, again.LastTransitionTime)
		}
		watch.Event("MODIFIED", podWith(cond(shopReady, "True", "Other", "words", was.LastTransitionTime)))
		words := w.takes(30*time.Second, saysTrue)[0]
		if words.LastTransitionTime != was.LastTransitionTime {
			t.Errorf("only the words were changed, lastTransitionTime is %v, was %v", words.LastTransitionTime, was.LastTransitionTime)
		}
		watch.Event("MODIFIED", podWith(cond(shopReady, "True", "ProbesSucceeding", "", was.LastTransitionTime)))
		w.quiet(time.Hour)
	})
}

// A watch that is behind, or silent, does not make the agent write again what it has written.
func TestReconcileWithALateWatch(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		w.takes(100*ms, saysTrue)
		w.sleepUntil(9 * time.Second)
		w.prober.set(notReady("shop"))
		now := take(w.patched(9010*ms, saysFalse))
		w.quiet(time.Hour)
		w.watch.Event("MODIFIED", now)
		w.quiet(time.Minute)
		w.is(true, 2, 0)
	})
}

// A restarted agent finds its condition in the pod: an equal one is not written, and one with
// another reason keeps its lastTransitionTime, now and at each later write.
func TestRestartOfTheAgent(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on(cond(shopReady, "True", "ProbesSucceeding", "", w.begin.Add(-time.Hour)))
		w.quiet(time.Minute)
		w.is(true, 0, 0)
	})
	inBubble(t, func(w *world) {
		before := w.begin.Add(-time.Hour).UTC()
		w.on(cond(shopReady, "False", "AgentStopping", "the agent stops", before))
		w.prober.set(notReady("shop"))
		if is := w.takes(100*ms, saysFalse)[0]; !is.LastTransitionTime.Equal(before) {
			t.Errorf("lastTransitionTime %v, want %v: the status is the same", is.LastTransitionTime, before)
		}
	})
}

// An agent that has just started writes nothing, until a probe without an attempt has had 2
// periods; the last word stands meanwhile.
func TestNothingBeforeAnAttempt(t *testing.T) {
	inBubble(t, func(w *world) {
		silent := notReady("shop")
		silent.Probes[0].Run, silent.Probes[0].ConsecutiveFailures, silent.Probes[0].FirstFailure = 0, 0, nil
		w.prober.status.Statuses[0] = silent
		w.on(cond(shopReady, "True", "ProbesSucceeding", "", w.begin))
		w.quiet(2*time.Second - time.Since(w.begin))
		w.is(true, 0, 0)
		w.takes(-1, shopReady+" False TargetsStarting shop: starting")
		if late := time.Since(w.begin) - 2*time.Second; late < 0 || late > 500*ms {
			t.Errorf("%v after 2 periods", late)
		}
	})
	inBubble(t, func(w *world) {
		silent := isReady("shop")
		silent.Ready, silent.Probes[0].Run, silent.Probes[0].Result = false, 0, 1
		w.prober.status.Statuses[0] = silent
		w.on()
		w.sleepUntil(time.Second)
		w.prober.silently(func(s *prober.Status) { s.Statuses = []prober.TargetStatus{isReady("shop")} }) // an attempt that tells no reader
		w.takes(-1, saysTrue)
		if late := time.Since(w.begin) - time.Second; late > 250*ms {
			t.Errorf("%v after the attempt", late)
		}
	})
}

// A condition is an AND: a settled target that fails makes it False, also while another target
// cannot settle because its source is down. True needs all. Once the other has been waited for
// longer than its allowance, the metric says that the pod has no word.
func TestNeighbourThatNeverSettles(t *testing.T) {
	blind := prober.TargetStatus{Name: "blind", Source: config.SourceProcess, Probes: []prober.ProbeStatus{
		{Kind: gate.Readiness, Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Failure},
	}}
	inBubble(t, func(w *world) {
		w.prober.status.SourceUp[config.SourceProcess] = false
		w.prober.status.Statuses = []prober.TargetStatus{blind, isReady("shop")}
		w.on(cond(shopReady, "True", "ProbesSucceeding", "", w.begin))
		w.quiet(2900 * ms)
		w.is(true, 0, 0)
		w.quiet(time.Minute)
		w.is(false, 0, 0)
		w.begin = time.Now()
		w.prober.set(blind, notReady("shop"))
		w.takes(10*ms, saysFalse)
		w.is(true, 1, 0)
		w.prober.set(blind, isReady("shop"))
		w.quiet(time.Minute)
		w.is(false, 1, 0)
		w.begin = time.Now()
		w.prober.change(func(s *prober.Status) {
			s.SourceUp[config.SourceProcess] = true
			s.Statuses = []prober.TargetStatus{isReady("blind"), isReady("shop")}
		})
		w.takes(10*ms, saysTrue)
		w.is(true, 2, 0)
	})
}

// The condition of some targets says nothing of others, and one of a target that a reload is
// about to add says nothing at all.
func TestTargetsOfAConditionThatAreNotThere(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Kubernetes.PodConditions[0].Targets = []string{"shop"}
		w.prober.set(isReady("shop"), notReady("other"))
		w.on()
		w.takes(100*ms, saysTrue)
		w.prober.set(isReady("other"))
		w.quiet(time.Minute)
		w.prober.set(isReady("other"), notReady("shop"))
		w.takes(-1, saysFalse)
	})
}

// A reload that adds a probe to a target makes no ready pod unready.
func TestReloadAddsAProbe(t *testing.T) {
	inBubble(t, func(w *world) {
		w.prober.status.Statuses = []prober.TargetStatus{running("shop")}
		w.on()
		w.takes(100*ms, saysTrue)
		w.prober.set(running("shop", prober.ProbeStatus{Kind: gate.Readiness, Period: 10 * time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3, Result: gate.Failure}))
		w.quiet(20 * time.Second)
		w.is(true, 1, 0)
		w.prober.set(isReady("shop"))
		w.quiet(time.Minute)
	})
}

// Without the key there is no goroutine, no subscription and no request. A reload turns the
// Writer on, leaves it as it is, changes the condition, and turns it off, which leaves the last
// words.
func TestReloads(t *testing.T) {
	inBubble(t, func(w *world) {
		off := *w.cfg
		off.Kubernetes = nil
		w.Apply(&off)
		if w.run != nil {
			t.Error("it runs without the key")
		}
		if _, on := w.Counts(); on {
			t.Error("there are metrics without the key")
		}
		w.prober.set(notReady("shop"))
		w.quiet(time.Minute)

		w.begin = time.Now()
		w.on()
		w.takes(100*ms, saysFalse)
		again := *w.cfg
		w.Apply(&again)
		w.quiet(time.Minute)

		w.begin = time.Now()
		changed, k := again, *again.Kubernetes
		k.PodConditions = append(k.PodConditions[:1:1], k.PodConditions[0])
		k.PodConditions[1].Type, k.PodConditions[1].State = "example.org/shop-live", "live"
		changed.Kubernetes = &k
		w.Apply(&changed)
		w.Next(t, "get").Answer(200, podWith()) // older than the last write
		w.watch = w.Next(t, "10").Open()
		w.takes(100*ms, "example.org/shop-live True ProbesSucceeding")
		w.is(true, 2, 0)

		w.Apply(&off)
		if _, on := w.Counts(); on || w.run != nil {
			t.Error("it runs without the key")
		}
		w.quiet(time.Minute)

		w.begin = time.Now() // somebody has removed the conditions meanwhile
		w.on()
		w.takes(100*ms, saysFalse)
	})
}

// The last word is False for each condition, at once, whatever was before. No last word is
// written while the pod is being deleted, of which the prober is told, nor when a preStop hook
// has said so. Nobody waits for the last word longer than a second.
func TestLastWord(t *testing.T) {
	const stopping = shopReady + " False AgentStopping the agent stops"
	for _, tt := range []struct {
		name   string
		target prober.TargetStatus
		status prober.Status // what else there is
		want   string
	}{
		{"ready", isReady("shop"), prober.Status{}, stopping},
		{"not settled", running("shop", probe(gate.Readiness, gate.Failure, 0, 0)), prober.Status{}, stopping},
		{"told by a preStop hook", isReady("shop"), prober.Status{Summary: prober.Summary{Terminating: true}}, ""},
	} {
		inBubble(t, func(w *world) {
			tt.status.SourceUp = w.prober.status.SourceUp
			w.prober.status = tt.status
			w.prober.set(tt.target)
			w.on(cond(shopReady, "True", "ProbesSucceeding", "", w.begin))
			w.quiet(500 * ms)
			w.finishes(t, tt.name, tt.want, 0)
		})
	}
	inBubble(t, func(w *world) {
		watch := w.on(cond(shopReady, "True", "ProbesSucceeding", "", w.begin))
		synctest.Wait()
		if w.prober.Summary().Terminating {
			t.Error("terminating before the deletion")
		}
		watch.Event("MODIFIED", deleted(podWith(cond(shopReady, "True", "ProbesSucceeding", "", w.begin))))
		synctest.Wait()
		if !w.prober.Summary().Terminating {
			t.Error("the prober is not told of the deletion")
		}
		w.quiet(500 * ms)
		w.finishes(t, "deleted", "", 0)
	})
	inBubble(t, func(w *world) {
		w.on()
		for range 10 {
			c, _ := w.patched(-1, saysTrue)
			c.Answer(500, "")
		}
		w.finishes(t, "backing off", stopping, 0)
	})
	inBubble(t, func(w *world) {
		w.on()
		w.patched(100*ms, saysTrue) // which nobody answers
		w.finishes(t, "hanging", "", time.Second)
	})
}

// finishes wants Finish, which has a second, to write a word, and to take so long.
func (w *world) finishes(t *testing.T, name, want string, took time.Duration) {
	t.Helper()
	began := time.Now()
	ended := w.finish()
	if want != "" {
		take(w.patched(-1, want)) // the watch ends meanwhile
	}
	synctest.Wait()
	<-ended
	if got := time.Since(began); got != took {
		t.Errorf("%s: it took %v, want %v", name, got, took)
	}
	w.Apply(w.cfg)
	w.quiet(time.Minute)
}

// The agent that stops slowly has its last word at once, and only once.
func TestLastWordDuringTheDelay(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		w.takes(100*ms, saysTrue)
		w.sleepUntil(time.Second)
		w.prober.change(func(s *prober.Status) { s.Stopping = true })
		w.takes(1010*ms, shopReady+" False AgentStopping the agent stops")
		w.prober.set(notReady("shop"))
		w.quiet(20 * time.Second)
		w.finishes(t, "after the delay", "", 0)
	})
}

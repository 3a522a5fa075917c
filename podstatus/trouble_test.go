// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
)

// A write that fails is tried again with the latest state, later after each failure, at most
// 30 s later, and not before the server wants it. Each kind of failure is said once, with the
// missing right if that is what it is; so is the end of the trouble.
func TestTrouble(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fail   func(*apitest.Call)
		looks  int // requests for the pod after each failure
		atOnce time.Duration
		says   string
	}{
		{"409", answer(409, `{"kind":"Status","message":"the object has been modified"}`), 1, 0, "the object has been modified"},
		{"422", answer(422, `{"kind":"Status","message":"ValidatingAdmissionPolicy 'p' denied request"}`), 1, 0, "ValidatingAdmissionPolicy"},
		{"429", answer(429, "", "Retry-After", "7"), 0, 7 * time.Second, "answers 429"},
		{"429 for long", answer(429, "", "Retry-After", "9999"), 0, 30 * time.Second, "answers 429"},
		{"500", answer(500, `{"kind":"Status","message":"I saw secret-1"}`), 0, 0, "I saw [token]"},
		{"503", answer(503, ""), 0, 0, "answers 503"},
		{"401", answer(401, ""), 0, 0, "does not accept the service account's token"},
		{"a lost connection", func(c *apitest.Call) { c.Cut() }, 0, 0, "patch pods/status of pod"},
		{"403", answer(403, `{"kind":"Status","message":"no"}`), 0, 0, `lacks the rule {apiGroups: [\"\"], resources: [pods/status], resourceNames: [web-0], verbs: [patch]}`},
	} {
		inBubble(t, func(w *world) {
			w.on()
			last := w.begin
			for i := range 12 {
				c, _ := w.patched(-1, saysTrue)
				if most := min(max(firstWait<<max(i-1, 0), tt.atOnce), longestWait); i > 0 {
					if gap := time.Since(last); gap > most || gap < max(most/2, tt.atOnce) {
						t.Errorf("%s: try %d after %v, want %v to %v", tt.name, i+1, gap, max(most/2, tt.atOnce), most)
					}
				}
				last = time.Now()
				tt.fail(c)
				for range tt.looks {
					w.Next(t, "get").Answer(200, podWith())
				}
			}
			w.is(false, 0, 12)
			w.prober.set(notReady("shop"))
			w.takes(-1, saysFalse)
			w.is(true, 1, 12)
			log := w.logs.String()
			if n := w.logs.Count("cannot write the conditions of the pod"); n != 1 || !strings.Contains(log, tt.says) || strings.Contains(log, "secret-1") {
				t.Errorf("%s: said %d times, want once with %q:\n%s", tt.name, n, tt.says, log)
			}
			if n := w.logs.Count("the pod has its conditions again"); n != 1 {
				t.Errorf("%s: the end of the trouble is said %d times", tt.name, n)
			}
		})
	}
}

// answer answers a call.
func answer(code int, body string, headers ...string) func(*apitest.Call) {
	return func(c *apitest.Call) { c.Answer(code, body, headers...) }
}

// A server that does not answer is given up after 10 s.
func TestServerThatHangs(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		w.patched(100*ms, saysTrue)
		w.patched(-1, saysTrue)
		if took := time.Since(w.begin); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("the second try came after %v", took)
		}
		w.is(false, 0, 1)
	})
}

// The prober is told of a deletion at once, also while a patch waits for its answer.
func TestDeletionDuringAPatch(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		w.patched(100*ms, saysTrue) // which nobody answers
		w.watch.Event("MODIFIED", deleted(podWith()))
		synctest.Wait()
		if took := time.Since(w.begin); !w.prober.Summary().Terminating || took != 100*ms {
			t.Errorf("terminating %v after %v", w.prober.Summary().Terminating, took)
		}
	})
}

// A write may have been done although its answer was lost. If the watch shows so, what it shows
// counts, and a target that has recovered meanwhile is ready after the back-off. If the watch is
// silent, the agent writes once more, whatever it believed before.
func TestLostAnswer(t *testing.T) {
	for name, lose := range map[string]func(*apitest.Call){
		"504":         answer(504, ""),
		"a cut":       func(c *apitest.Call) { c.Cut() },
		"half a pod":  answer(200, `{"metadata":`),
		"no answer":   func(*apitest.Call) {},
		"at a reload": nil,
	} {
		for _, silent := range []bool{false, true} {
			inBubble(t, func(w *world) {
				w.on()
				first := w.takes(100*ms, saysTrue)[0]
				w.sleepUntil(11 * time.Second)
				w.prober.set(notReady("shop"))
				c, lost := w.patched(11010*ms, saysFalse)
				shown := podWith(cond(shopReady, "False", lost[0].Reason, lost[0].Message, lost[0].LastTransitionTime))
				if !silent {
					w.watch.Event("MODIFIED", shown)
				}
				w.prober.set(isReady("shop"))
				synctest.Wait()
				if lose == nil {
					changed := *w.cfg
					changed.Kubernetes = &config.Kubernetes{PodConditions: w.cfg.Kubernetes.PodConditions, Events: true}
					w.Apply(&changed)
					w.Next(t, "get").Answer(200, shown)
					w.watch = w.Next(t, "10").Open()
				} else {
					lose(c)
				}
				again := w.takes(-1, saysTrue)[0]
				if late := time.Since(w.begin); late > 22*time.Second || name != "no answer" && late > 11500*ms {
					t.Errorf("%s, silent %v: written again at %v", name, silent, late)
				}
				if silent && lose != nil && !again.LastTransitionTime.Equal(first.LastTransitionTime) {
					t.Errorf("%s: lastTransitionTime %v, was %v, and nothing else is known", name, again.LastTransitionTime, first.LastTransitionTime)
				}
				w.quiet(time.Minute)
			})
		}
	}
}

// A refused write was not done: a target that recovers meanwhile needs no other.
func TestRefusalIsNoDoubt(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on(cond(shopReady, "True", "ProbesSucceeding", "", w.begin))
		w.prober.set(notReady("shop"))
		c, _ := w.patched(100*ms, saysFalse)
		w.prober.set(isReady("shop"))
		c.Answer(429, "")
		w.quiet(time.Minute)
		w.is(true, 0, 1)
	})
}

// A state that changes while the agent backs off does not shorten the wait, also if the pod
// has said the right thing in between.
func TestNoHurryInTrouble(t *testing.T) {
	inBubble(t, func(w *world) {
		w.on()
		c, _ := w.patched(100*ms, saysTrue)
		c.Answer(429, "", "Retry-After", "20")
		for range 15 {
			w.quiet(time.Second)
			w.prober.set(notReady("shop"))
		}
		w.takes(20100*ms, saysFalse)
	})
	inBubble(t, func(w *world) {
		w.on(cond(shopReady, "False", "ProbesFailing", "shop: readiness: http_status (3/3)", w.begin))
		c, _ := w.patched(100*ms, saysTrue)
		c.Answer(429, "", "Retry-After", "20")
		w.quiet(time.Second)
		w.prober.set(notReady("shop")) // as the pod says
		w.quiet(time.Second)
		w.is(true, 0, 1)
		w.prober.set(isReady("shop"))
		w.quiet(time.Second)
		w.is(false, 0, 1)
		w.takes(20100*ms, saysTrue)
	})
}

// Once the pod is no more, nothing is written any more: neither after 404, nor if another pod
// has the name, nor after the watch has seen the deletion. That is said once, and is not
// called out of sync.
func TestPodIsGone(t *testing.T) {
	const missing = `{"kind":"Status","reason":"NotFound","message":"pods \"web-0\" not found"}`
	another := strings.Replace(podWith(), `"u1"`, `"u2"`, 1)
	for name, ends := range map[string]func(w *world, c *apitest.Call){
		"404":                 func(_ *world, c *apitest.Call) { c.Answer(404, missing) },
		"409 of another pod":  func(w *world, c *apitest.Call) { c.Answer(409, ""); w.Next(w.t, "get").Answer(200, another) },
		"422 of another pod":  func(w *world, c *apitest.Call) { c.Answer(422, ""); w.Next(w.t, "get").Answer(200, another) },
		"409, and no pod":     func(w *world, c *apitest.Call) { c.Answer(409, ""); w.Next(w.t, "get").Answer(404, missing) },
		"the watch says so":   func(w *world, c *apitest.Call) { w.watch.Event("DELETED", podWith()); c.Answer(500, "") },
		"the watch was first": func(w *world, c *apitest.Call) { c.Answer(500, ""); w.watch.Event("DELETED", podWith()) },
	} {
		inBubble(t, func(w *world) {
			w.on()
			c, _ := w.patched(100*ms, saysTrue)
			ends(w, c)
			for range 3 {
				w.quiet(time.Minute)
				w.prober.set(notReady("shop"))
			}
			w.is(true, 0, 1)
			if n := w.logs.Count("the pod is gone"); n != 1 {
				t.Errorf("%s: said %d times:\n%s", name, n, w.logs.String())
			}
		})
	}
}

// Before the pod has been seen nothing can be written, and the metric says so.
func TestPodIsNotKnown(t *testing.T) {
	inBubble(t, func(w *world) {
		w.Apply(w.cfg)
		w.Next(t, "get").Answer(403, "")
		time.Sleep(200 * ms)
		w.is(false, 0, 0)
	})
}

// A Writer ends at once, whatever it was doing: looking, writing, waiting or backing off. Its
// goroutines have ended, or the bubble would not.
func TestCloseAtAnyTime(t *testing.T) {
	for name, do := range map[string]func(w *world){
		"looking": func(w *world) { w.Apply(w.cfg); w.Next(w.t, "get") },
		"writing": func(w *world) { w.on(); w.patched(100*ms, saysTrue); w.Acted(Act{}); w.Next(w.t, "event") },
		"waiting": func(w *world) { w.on(); w.takes(100*ms, saysTrue) },
		"backing off": func(w *world) {
			w.on()
			c, _ := w.patched(100*ms, saysTrue)
			c.Answer(500, "")
			w.Acted(Act{})
			w.Next(w.t, "event").Answer(500, "")
		},
	} {
		inBubble(t, func(w *world) {
			w.cfg.Kubernetes.Events = true
			do(w)
			synctest.Wait()
			began := time.Now()
			w.Close()
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: it took %v", name, took)
			}
			w.Apply(w.cfg) // which does nothing any more
			if w.run != nil {
				t.Errorf("%s: it runs again", name)
			}
		})
	}
}

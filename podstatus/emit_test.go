// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
)

// emitting runs a test with a Writer that writes events alone.
func emitting(t *testing.T, test func(w *world)) {
	t.Helper()
	inBubble(t, func(w *world) {
		w.cfg.Kubernetes = &config.Kubernetes{Events: true}
		w.on()
		w.quiet(time.Second)
		test(w)
	})
}

// counted wants so many events to be written, failed and dropped.
func (w *world) counted(written, failed, dropped uint64) {
	w.t.Helper()
	synctest.Wait()
	if c, on := w.Counts(); !on || !c.Synced || c.EventsSucceeded != written || c.EventsFailed != failed || c.EventsDropped != dropped {
		w.t.Errorf("after %v: %+v, want %d written, %d failed, %d dropped", time.Since(w.begin), c, written, failed, dropped)
	}
}

func nameOf(c *apitest.Call) string {
	var e struct{ Metadata struct{ Name string } }
	if err := json.Unmarshal([]byte(c.Body), &e); err != nil {
		panic(err)
	}
	return e.Metadata.Name
}

// A run of failures is an event as a kubelet writes it, and the same event again, when the
// result changes, raises the count of the first.
func TestEventsAreCounted(t *testing.T) {
	emitting(t, func(w *world) {
		w.prober.set(running("shop", readiness(1)))
		c := w.Next(t, "event")
		name := nameOf(c)
		at := w.begin.Add(1010 * ms).UTC()
		if want := fmt.Sprintf("web-0.%x", at.UnixNano()); name != want {
			t.Errorf("the name is %s, want %s", name, want)
		}
		want := `{"apiVersion":"v1","count":1,"firstTimestamp":"` + at.Format(time.RFC3339) + `",` +
			`"involvedObject":{"apiVersion":"v1","kind":"Pod","name":"web-0","namespace":"shop","uid":"u1"},"kind":"Event","lastTimestamp":"` + at.Format(time.RFC3339) + `",` +
			`"message":"Readiness probe failed: shop: HTTP probe failed with statuscode: 500","metadata":{"name":"` + name + `","namespace":"shop"},` +
			`"reason":"Unhealthy","reportingComponent":"prober_exporter","reportingInstance":"node-1","source":{"component":"prober_exporter","host":"node-1"},"type":"Warning"}`
		if c.Body != want {
			t.Errorf("created\n%s, want\n%s", c.Body, want)
		}
		c.Answer(201, "{}")
		w.prober.set(running("shop", readiness(2)))
		w.quiet(3 * time.Second)
		w.prober.set(notReady("shop"))
		c = w.Next(t, name)
		if want := `{"count":2,"lastTimestamp":"` + w.begin.Add(4200*ms).UTC().Format(time.RFC3339) + `"}`; c.Body != want {
			t.Errorf("patched %s, want %s", c.Body, want)
		}
		c.Answer(200, "{}")
		w.prober.set(notReady("shop"))
		w.prober.set(isReady("shop"))
		w.quiet(time.Minute)
		w.counted(2, 0, 0)

		w.prober.set(running("shop", readiness(1)))
		w.Next(t, name).Answer(200, "{}")
		w.prober.set(isReady("other"))
		w.quiet(time.Second)
		w.prober.set(running("shop", readiness(1))) // of that name, but another target
		w.Next(t, name).Answer(200, "{}")
		w.prober.set(isReady("shop"))
		w.quiet(time.Minute)
		w.counted(4, 0, 0)

		w.prober.set(notReady("shop")) // an hour later the API server has forgotten the event
		w.Next(t, name).Answer(404, `{"kind":"Status","reason":"NotFound","message":"events not found"}`)
		c = w.Next(t, "event")
		if nameOf(c) == name || !strings.Contains(c.Body, `"count":1`) {
			t.Errorf("created %s", c.Body)
		}
		c.Answer(201, "{}")
		w.counted(5, 0, 0)
	})
}

// Events that wait when a reload turns events off are not written later, and acts are no
// events meanwhile.
func TestEventsAreTurnedOff(t *testing.T) {
	emitting(t, func(w *world) {
		w.Acted(Act{Target: "shop"})
		w.Next(t, "event")
		w.Acted(Act{Target: "shop"})
		w.Apply(&config.Config{})
		for range 2 * burst {
			w.Acted(Act{Target: "shop"})
		}
		w.on()
		w.quiet(time.Minute)
		w.counted(0, 0, 0)
	})
}

// 60 events at once are 25, and 35 are dropped; after that one a second is written.
func TestEventsHaveARate(t *testing.T) {
	emitting(t, func(w *world) {
		act := func() { w.Acted(Act{Target: "shop", Kind: gate.Liveness, Handler: "signal"}) }
		for range 60 {
			act()
		}
		c := w.Next(t, "event")
		name := nameOf(c)
		c.Answer(201, "{}")
		for range 24 {
			w.Next(t, name).Answer(200, "{}")
		}
		w.quiet(time.Second)
		w.counted(25, 0, 35)
		act()
		act()
		w.Next(t, name).Answer(200, "{}")
		w.quiet(10 * time.Second)
		w.counted(26, 0, 36)
	})
}

// Without `events: true` an act is no event, and counts for nothing.
func TestNoEventsUnlessAsked(t *testing.T) {
	inBubble(t, func(w *world) {
		w.Acted(Act{Target: "shop"})
		w.on()
		w.takes(100*ms, saysTrue)
		w.prober.set(notReady("shop"))
		w.takes(200*ms, saysFalse)
		w.Acted(Act{Target: "shop"})
		w.quiet(time.Minute)
		w.counted(0, 0, 0)
	})
}

// An event that cannot be written is tried 5 times, later each time, and then dropped. One that
// is forbidden is dropped at once, and the missing right is said once. A condition does not
// wait for either.
func TestEventsInTrouble(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Kubernetes.Events = true
		w.on()
		w.takes(100*ms, saysTrue)
		w.Acted(Act{Target: "shop", Kind: gate.Startup, Handler: "docker", Failure: "no\x1b such container"})
		c := w.Next(t, "event")
		if !strings.Contains(c.Body, `"message":"Target shop failed startup probe, restart by docker failed: no\\x1b such container"`) || !strings.Contains(c.Body, `"type":"Warning"`) {
			t.Errorf("created %s", c.Body)
		}
		w.prober.set(running("shop", readiness(3)))
		w.takes(200*ms, saysFalse) // while the event waits
		c.Answer(500, "")
		for range 4 {
			w.Next(t, "event").Answer(429, "", "Retry-After", "3")
		}
		for range 3 {
			w.Next(t, "event").Answer(403, "")
			w.Acted(Act{Target: "shop"})
		}
		w.Next(t, "event").Answer(201, "{}")
		w.quiet(time.Minute)
		w.counted(1, 8, 4)
		if n := w.logs.Count("cannot write an event"); n != 2 || w.logs.Count(`lacks the rule {apiGroups: [\"\"], resources: [events], verbs: [create]}`) != 1 {
			t.Errorf("said %d times:\n%s", n, w.logs.String())
		}
	})
}

// An event that the API server has although its answer was lost counts as written, and the next
// one raises its count. Events of one moment have names of their own.
func TestLostAnswerOfAnEvent(t *testing.T) {
	emitting(t, func(w *world) {
		w.Acted(Act{Target: "shop"})
		w.Acted(Act{Target: "other"})
		w.Acted(Act{Target: "shop"})
		c := w.Next(t, "event")
		name := nameOf(c)
		c.Answer(504, "")
		c = w.Next(t, "event")
		if nameOf(c) != name {
			t.Errorf("created %s after %s", nameOf(c), name)
		}
		c.Answer(409, `{"kind":"Status","reason":"AlreadyExists"}`)
		w.counted(1, 1, 0)
		for range 2 { // without a lost answer 409 is a failure
			c = w.Next(t, "event")
			if nameOf(c) == name {
				t.Errorf("two events with the name %s", name)
			}
			c.Answer(409, `{"kind":"Status","reason":"AlreadyExists"}`)
		}
		w.Next(t, "event").Answer(201, "{}")
		w.Next(t, name).Answer(200, "{}")
		w.quiet(time.Minute)
		w.counted(3, 3, 0)
	})
}

// An event of a target whose source names its container names the container's field. Events
// wait until the pod has been seen, and are written at once then.
func TestEventsNameTheContainer(t *testing.T) {
	for container, want := range map[string]string{"app": `"fieldPath":"spec.containers{app}"`, "side": `"fieldPath":"spec.initContainers{side}"`} {
		inBubble(t, func(w *world) {
			w.cfg.Kubernetes = &config.Kubernetes{Events: true}
			w.cfg.Targets = []config.Target{{Name: "shop", Instance: config.Instance{Source: config.SourceKubernetes, Container: container}}}
			w.Apply(w.cfg)
			get := w.Next(t, "get")
			w.Acted(Act{Target: "shop"})
			w.quiet(9 * time.Second)
			get.Answer(200, strings.Replace(podWith(), `"containers"`, `"initContainers":[{"name":"side"}],"containers"`, 1))
			answered := time.Now()
			c := <-w.Calls
			for ; c.Asks() != "event"; c = <-w.Calls {
				c.Open() // the watch
			}
			if took := time.Since(answered); !strings.Contains(c.Body, want) || took != 0 {
				t.Errorf("created %s after %v, want %s at once", c.Body, took, want)
			}
		})
	}
}

// The name of a pod that is as long as names may be is cut for its events.
func TestEventName(t *testing.T) {
	if got := eventName(strings.Repeat("p", 253), time.Unix(1, 0)); len(got) != 253 || !strings.HasSuffix(got, "p.3b9aca00") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

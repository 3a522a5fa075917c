// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

func (r *podRun) want(t *testing.T, id string, phase gate.Phase) {
	t.Helper()
	if got := r.Instance("app"); got.ID != id || got.Phase != phase {
		t.Fatalf("instance %+v, want %s %v", got, id, phase)
	}
}

// From a container that runs, over its end for want of memory, to its next life: 3 changes
// told once each, 2 instances seen, and 2 requests in all.
func TestKubernetesFollowsARestart(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	if got := r.Instance("app"); got != (gate.Instance{}) || r.Up() {
		t.Fatalf("before Run: %+v, up %v; want nothing", got, r.Up())
	}
	r.start(t)
	get := s.next(t, "get")
	if got := get.r.Header.Get("Authorization"); got != "Bearer secret-1" {
		t.Fatalf("authorized by %q", got)
	}
	get.answer(200, podOf("10", runsA))
	r.change(t)
	r.want(t, "containerd://a", gate.Running)

	w := s.next(t, "10").open()
	r.log(t, "level=INFO", "watching the pod", "namespace=shop", "pod=web-0")
	if !r.Up() {
		t.Fatal("not up while watching")
	}
	w.event("MODIFIED", podOf("11", endsA))
	r.change(t)
	r.want(t, "containerd://a", gate.Terminated)
	if d := r.Describe("app"); !d.OOMKilled || d.ExitCode == nil || *d.ExitCode != 137 {
		t.Fatalf("%+v, want OOMKilled with exit code 137", d)
	}
	w.event("MODIFIED", podOf("12", endsA)) // no news
	w.event("MODIFIED", podOf("13", runsB))
	r.change(t)
	r.want(t, "containerd://b", gate.Running)
	r.stop()
	if n := len(r.changes); n != 0 {
		t.Errorf("%d changes too many", n)
	}
	r.quiet(t)
}

// A watch that ends in order is taken up again at the last version, also that of a
// bookmark; the source stays up and says nothing.
func TestKubernetesResumesAfterTheOrdinaryEnd(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.lasting = 0
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA))
	w := s.next(t, "10").open()
	r.log(t, "watching the pod")
	w.event("MODIFIED", podOf("11", runsA))
	w.event("BOOKMARK", `{"kind":"Pod","metadata":{"resourceVersion":"15","creationTimestamp":null},"spec":{"containers":null},"status":{}}`)
	w.end()
	for range 5 {
		w = s.next(t, "15").open()
		if !r.Up() {
			t.Fatal("down after the ordinary end of a watch")
		}
		w.cut()
	}
	s.next(t, "15")
	r.stop()
	r.quiet(t)
}

// A deleted pod is final, and nothing more is asked of the server: neither after the
// event, nor after a look that finds no pod or another one of the name.
func TestKubernetesDeletion(t *testing.T) {
	for _, how := range []string{"event", "missing", "replaced"} {
		s := newPodServer(t)
		r := newPodRun(t, s)
		r.start(t)
		s.next(t, "get").answer(200, podOf("10", endsA))
		r.change(t)
		w := s.next(t, "10").open()
		r.log(t, "watching the pod")
		deleted := strings.Replace(podOf("11", runsA), `"uid":"u1"`, `"uid":"u1","deletionTimestamp":"2026-11-21T12:00:30Z","deletionGracePeriodSeconds":30`, 1)
		w.event("MODIFIED", deleted)
		r.change(t)
		if got := r.Instance("app"); got.ID != "containerd://a" || !got.Deleting || got.Final {
			t.Fatalf("%s: within the grace period %+v", how, got)
		}
		if how == "event" {
			w.event("DELETED", deleted)
		} else {
			w.event("ERROR", `{"kind":"Status","code":410}`)
		}
		switch how {
		case "missing":
			s.next(t, "get").answer(404, `{"kind":"Status","reason":"NotFound","message":"pods \"web-0\" not found"}`)
		case "replaced":
			s.next(t, "get").answer(200, strings.Replace(podOf("12", runsB), `"u1"`, `"u2"`, 1))
		}
		r.change(t)
		r.log(t, "level=INFO", "pod has been deleted")
		if got := r.Instance("app"); got != (gate.Instance{Final: true, Deleting: true}) {
			t.Fatalf("%s: %+v, want final", how, got)
		}
		r.Watch(appTarget("late", "app"))
		if got := r.Instance("late"); !got.Final {
			t.Errorf("%s: a target that comes later: %+v, want final", how, got)
		}
		r.stop()
		if len(s.calls) != 0 {
			t.Errorf("%s: asked again", how)
		}
		r.quiet(t)
	}
}

// Events of another pod of the name change nothing.
func TestKubernetesIgnoresAnotherPod(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA))
	r.change(t)
	w := s.next(t, "10").open()
	other := strings.Replace(podOf("12", runsB), `"u1"`, `"u2"`, 1)
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		w.event(kind, other)
	}
	w.cut()
	s.next(t, "12") // all have been read
	r.want(t, "containerd://a", gate.Running)
	if len(r.changes) != 0 {
		t.Error("a change by another pod")
	}
}

// A target that comes later knows its instance at once; an equal one keeps it, one with
// another container does not, and a forgotten one has none. A name that the pod does not
// have is said once a target, in the log and to the reader.
func TestKubernetesTargetsComeAndGo(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.Watch(appTarget("early", "appp"))
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA+`,{"name":"db","containerID":"c://d","state":{"running":{"startedAt":"2026-11-21T12:00:00Z"}}}`))
	r.log(t, "level=WARN", "target=early", `the pod has no container named \"appp\"`)
	w := s.next(t, "10").open()
	r.log(t, "watching the pod")

	r.Watch(appTarget("late", "app"))
	r.Watch(appTarget("app", "app"))
	r.want(t, "containerd://a", gate.Running)
	if got := r.Instance("late").ID; got != "containerd://a" {
		t.Errorf("late: %q", got)
	}
	r.quiet(t)
	r.Watch(appTarget("late", "nobody"))
	r.log(t, "level=WARN", "target=late", "nobody")
	r.Watch(appTarget("late", "nobody"))
	r.quiet(t)
	if got := r.Instance("late"); got != (gate.Instance{}) {
		t.Errorf("late without a container: %+v", got)
	}
	if got := r.Describe("late").Message; got != `the pod has no container named "nobody"` {
		t.Errorf("late: %q", got)
	}
	r.Forget("late")
	r.Forget("late")
	if got := r.Describe("late"); got.Message != "" || r.Instance("late") != (gate.Instance{}) {
		t.Errorf("forgotten: %+v", got)
	}
	w.event("MODIFIED", podOf("11", endsA))
	for range 3 { // app, and early, which changed twice: from nothing and not again
		if got := testutil.Receive(t, r.changes, "a change"); got == "app" && r.Instance("app").Phase == gate.Terminated {
			break
		}
	}
	r.stop()
	r.want(t, "containerd://a", gate.Terminated) // what was seen is still known
	r.start(t)
	s.next(t, "get").answer(200, podOf("20", runsB))
	s.next(t, "20")
	r.want(t, "containerd://b", gate.Running)
}

// The token is read for each request and ca.crt when it has changed: a new token goes with
// the next request, and a server with a certificate of another authority is asked once
// ca.crt has it, not before.
func TestKubernetesRotation(t *testing.T) {
	s, after := newPodServer(t), newOtherServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA))
	r.file(t, "token", "secret-2\n")
	w := s.next(t, "10")
	w.open()
	r.log(t, "watching the pod")
	r.file(t, "token", "secret-3")
	ca := s.ca()
	r.at(t, after)
	r.file(t, "ca.crt", ca)
	w.end()
	r.log(t, "level=WARN", "certificate")
	r.file(t, "ca.crt", after.ca())
	w = after.next(t, "get")
	if got := w.r.Header.Get("Authorization"); got != "Bearer secret-3" {
		t.Errorf("authorized by %q, want the third token", got)
	}
	w.answer(200, podOf("11", runsB))
	after.next(t, "11").open()
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://b", gate.Running)
}

// 8 readers and a writer at once while 200 events come: no race, and the last event wins.
func TestKubernetesConcurrency(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA))
	w := s.next(t, "10").open()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-r.changes:
				default:
					r.Instance("app")
					r.Describe("other")
					r.Up()
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.Watch(appTarget("other", "app"))
				r.Forget("other")
			}
		}
	})
	for range 100 {
		w.event("MODIFIED", podOf("11", runsA))
		w.event("MODIFIED", podOf("12", runsB))
	}
	w.cut()
	s.next(t, "12")
	close(stop)
	wg.Wait()
	r.want(t, "containerd://b", gate.Running)
}

// What is asked at every turn of a probe allocates nothing.
func TestKubernetesAllocatesNothing(t *testing.T) {
	r := newPodRun(t, newPodServer(t))
	r.see(aPodOf(t, ``, `"containerStatuses":[`+endsA+`]`), func(string) {})
	if n := testing.AllocsPerRun(100, func() { r.Instance("app"); r.Describe("app"); r.Up() }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// After Run no goroutine is left, whatever it was doing: asking, watching or waiting.
func TestKubernetesLeavesNothing(t *testing.T) {
	s := newPodServer(t)
	before := runtime.NumGoroutine()
	for _, at := range []string{"asking", "watching", "waiting"} {
		r := newPodRun(t, s)
		r.retryMin, r.retryMax = time.Hour, time.Hour
		r.start(t)
		get := s.next(t, "get")
		switch at {
		case "watching":
			get.answer(200, podOf("10", runsA))
			s.next(t, "10").open()
			r.log(t, "watching the pod")
		case "waiting":
			get.answer(403, podForbidden)
			r.log(t, "level=WARN")
		}
		r.stop()
	}
	testutil.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

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
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
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
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	if got := r.Instance("app"); got != (gate.Instance{}) || r.Up() {
		t.Fatalf("before Run: %+v, up %v; want nothing", got, r.Up())
	}
	r.start(t)
	get := s.Next(t, "get")
	if got := get.R.Header.Get("Authorization"); got != "Bearer secret-1" {
		t.Fatalf("authorized by %q", got)
	}
	get.Answer(200, podOf("10", runsA))
	r.change(t)
	r.want(t, "containerd://a", gate.Running)

	w := s.Next(t, "10").Open()
	r.log(t, "level=INFO", "watching the pod", "namespace=shop", "pod=web-0")
	if !r.Up() {
		t.Fatal("not up while watching")
	}
	w.Event("MODIFIED", podOf("11", endsA))
	r.change(t)
	r.want(t, "containerd://a", gate.Terminated)
	if d := r.Describe("app"); !d.OOMKilled || d.ExitCode == nil || *d.ExitCode != 137 {
		t.Fatalf("%+v, want OOMKilled with exit code 137", d)
	}
	w.Event("MODIFIED", podOf("12", endsA)) // no news
	w.Event("MODIFIED", podOf("13", runsB))
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
	s := apitest.NewServer(t)
	r := newPodRun(t, s, func(p *kubernetes.Pace) { p.Lasting = 0 })
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	w := s.Next(t, "10").Open()
	r.log(t, "watching the pod")
	w.Event("MODIFIED", podOf("11", runsA))
	w.Event("BOOKMARK", `{"kind":"Pod","metadata":{"resourceVersion":"15","creationTimestamp":null},"spec":{"containers":null},"status":{}}`)
	w.End()
	for range 5 {
		w = s.Next(t, "15").Open()
		if !r.Up() {
			t.Fatal("down after the ordinary end of a watch")
		}
		w.Cut()
	}
	s.Next(t, "15")
	r.stop()
	r.quiet(t)
}

// A deleted pod is final, and nothing more is asked of the server: neither after the
// event, nor after a look that finds no pod or another one of the name.
func TestKubernetesDeletion(t *testing.T) {
	for _, how := range []string{"event", "missing", "replaced"} {
		s := apitest.NewServer(t)
		r := newPodRun(t, s)
		r.start(t)
		s.Next(t, "get").Answer(200, podOf("10", endsA))
		r.change(t)
		w := s.Next(t, "10").Open()
		r.log(t, "watching the pod")
		deleted := strings.Replace(podOf("11", runsA), `"uid":"u1"`, `"uid":"u1","deletionTimestamp":"2026-11-21T12:00:30Z","deletionGracePeriodSeconds":30`, 1)
		w.Event("MODIFIED", deleted)
		r.change(t)
		if got := r.Instance("app"); got.ID != "containerd://a" || !got.Deleting || got.Final {
			t.Fatalf("%s: within the grace period %+v", how, got)
		}
		if how == "event" {
			w.Event("DELETED", deleted)
		} else {
			w.Event("ERROR", `{"kind":"Status","code":410}`)
		}
		switch how {
		case "missing":
			s.Next(t, "get").Answer(404, `{"kind":"Status","reason":"NotFound","message":"pods \"web-0\" not found"}`)
		case "replaced":
			s.Next(t, "get").Answer(200, strings.Replace(podOf("12", runsB), `"u1"`, `"u2"`, 1))
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
		if len(s.Calls) != 0 {
			t.Errorf("%s: asked again", how)
		}
		r.quiet(t)
	}
}

// Events of another pod of the name change nothing.
func TestKubernetesIgnoresAnotherPod(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	r.change(t)
	w := s.Next(t, "10").Open()
	other := strings.Replace(podOf("12", runsB), `"u1"`, `"u2"`, 1)
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		w.Event(kind, other)
	}
	w.Cut()
	s.Next(t, "12") // all have been read
	r.want(t, "containerd://a", gate.Running)
	if len(r.changes) != 0 {
		t.Error("a change by another pod")
	}
}

// A target that comes later knows its instance at once; an equal one keeps it, one with
// another container does not, and a forgotten one has none. A name that the pod does not
// have is said once a target, in the log and to the reader.
func TestKubernetesTargetsComeAndGo(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	r.Watch(appTarget("early", "appp"))
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA+`,{"name":"db","containerID":"c://d","state":{"running":{"startedAt":"2026-11-21T12:00:00Z"}}}`))
	r.log(t, "level=WARN", "target=early", `the pod has no container named \"appp\"`)
	w := s.Next(t, "10").Open()
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
	w.Event("MODIFIED", podOf("11", endsA))
	for range 3 { // app, and early, which changed twice: from nothing and not again
		if got := testutil.Receive(t, r.changes, "a change"); got == "app" && r.Instance("app").Phase == gate.Terminated {
			break
		}
	}
	r.stop()
	r.want(t, "containerd://a", gate.Terminated) // what was seen is still known
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("20", runsB))
	s.Next(t, "20")
	r.want(t, "containerd://b", gate.Running)
}

// The token is read for each request and ca.crt when it has changed: a new token goes with
// the next request, and a server with a certificate of another authority is asked once
// ca.crt has it, not before.
func TestKubernetesRotation(t *testing.T) {
	s, after := apitest.NewServer(t), newOtherServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	r.File(t, "token", "secret-2\n")
	w := s.Next(t, "10")
	w.Open()
	r.log(t, "watching the pod")
	r.File(t, "token", "secret-3")
	ca := s.CA()
	r.At(t, after)
	r.File(t, "ca.crt", ca)
	w.End()
	r.log(t, "level=WARN", "certificate")
	r.File(t, "ca.crt", after.CA())
	w = after.Next(t, "get")
	if got := w.R.Header.Get("Authorization"); got != "Bearer secret-3" {
		t.Errorf("authorized by %q, want the third token", got)
	}
	w.Answer(200, podOf("11", runsB))
	after.Next(t, "11").Open()
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://b", gate.Running)
}

// 8 readers and a writer at once while 200 events come: no race, and the last event wins.
func TestKubernetesConcurrency(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	w := s.Next(t, "10").Open()
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
		w.Event("MODIFIED", podOf("11", runsA))
		w.Event("MODIFIED", podOf("12", runsB))
	}
	w.Cut()
	s.Next(t, "12")
	close(stop)
	wg.Wait()
	r.want(t, "containerd://b", gate.Running)
}

// What is asked at every turn of a probe allocates nothing.
func TestKubernetesAllocatesNothing(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", endsA))
	s.Next(t, "10").Open()
	r.log(t, "watching the pod")
	if n := testing.AllocsPerRun(100, func() { r.Instance("app"); r.Describe("app"); r.Up() }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// After Run no goroutine is left, whatever it was doing: asking, watching or waiting.
func TestKubernetesLeavesNothing(t *testing.T) {
	s := apitest.NewServer(t)
	before := runtime.NumGoroutine()
	for _, at := range []string{"asking", "watching", "waiting"} {
		r := newPodRun(t, s, func(p *kubernetes.Pace) { p.RetryMin, p.RetryMax = time.Hour, time.Hour })
		r.start(t)
		get := s.Next(t, "get")
		switch at {
		case "watching":
			get.Answer(200, podOf("10", runsA))
			s.Next(t, "10").Open()
			r.log(t, "watching the pod")
		case "waiting":
			get.Answer(403, podForbidden)
			r.log(t, "level=WARN")
		}
		r.stop()
	}
	testutil.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

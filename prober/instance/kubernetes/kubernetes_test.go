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

// A container runs, is killed for lack of memory, and runs again. The source reports each of the 3
// changes once, sees 2 instances, and sends 2 requests in all.
func TestKubernetesFollowsARestart(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	if got := r.Instance("app"); got != (gate.Instance{}) || r.Up() {
		t.Fatalf("before Run: %+v, up %v; want no instance and not up", got, r.Up())
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
		t.Fatal("the source is not up while it watches")
	}
	w.Event("MODIFIED", podOf("11", endsA))
	r.change(t)
	r.want(t, "containerd://a", gate.Terminated)
	if d := r.Describe("app"); !d.OOMKilled || d.ExitCode == nil || *d.ExitCode != 137 {
		t.Fatalf("%+v, want OOMKilled with exit code 137", d)
	}
	w.Event("MODIFIED", podOf("12", endsA)) // no change
	w.Event("MODIFIED", podOf("13", runsB))
	r.change(t)
	r.want(t, "containerd://b", gate.Running)
	r.stop()
	if n := len(r.changes); n != 0 {
		t.Errorf("%d changes more than expected", n)
	}
	r.quiet(t)
}

// After the ordinary end of a watch, the next watch begins at the last version, which may be that of
// a bookmark. The source stays up and logs nothing.
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
			t.Fatal("the source is down after the ordinary end of a watch")
		}
		w.Cut()
	}
	s.Next(t, "15")
	r.stop()
	r.quiet(t)
}

// A deleted pod is final. The source sends no more requests after the event, or after a look that
// finds no pod or another pod of the same name.
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
			t.Errorf("%s: the source asks again", how)
		}
		r.quiet(t)
	}
}

// Events of another pod of the same name change nothing.
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
		t.Error("the source reports a change by another pod")
	}
}

// A target that comes later knows its instance at once. An equal target keeps the instance, a target
// with another container does not, and a forgotten target has none. For each target the source says
// once, in the log and in the details, that the pod has no container of that name.
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
	for range 3 { // app once and early twice
		if got := testutil.Receive(t, r.changes, "a change"); got == "app" && r.Instance("app").Phase == gate.Terminated {
			break
		}
	}
	r.stop()
	r.want(t, "containerd://a", gate.Terminated) // the source still knows what it saw
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("20", runsB))
	s.Next(t, "20")
	r.want(t, "containerd://b", gate.Running)
}

// The source reads the token for each request, and ca.crt when the file has changed. The next request
// has the new token. A server with a certificate of another authority gets requests only once ca.crt
// has that authority.
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

// 8 readers and a writer run while 200 events come: there is no race, and the last event wins.
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

// What a probe asks at every turn allocates nothing.
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

// After Run no goroutine is left, whether Run was asking, watching or waiting.
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

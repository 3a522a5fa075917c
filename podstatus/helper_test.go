// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober"
)

const ms = time.Millisecond

// scripted is a prober whose snapshots are given by the test. Its subscriptions are those of a
// manager without targets.
type scripted struct {
	*prober.Manager
	mu     sync.Mutex
	status prober.Status
}

func (s *scripted) Status(prober.Detail) prober.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *scripted) Target(name string, _ prober.Detail) (prober.TargetStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.status.Statuses {
		if t.Name == name {
			return t, true
		}
	}
	return prober.TargetStatus{}, false
}

// set makes targets the snapshot, and tells the readers.
func (s *scripted) set(targets ...prober.TargetStatus) {
	s.change(func(status *prober.Status) { status.Statuses = targets })
}

// silently changes the snapshot, and tells nobody.
func (s *scripted) silently(f func(*prober.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

// change changes the snapshot, and tells the readers.
func (s *scripted) change(f func(*prober.Status)) {
	s.silently(f)
	if err := s.Apply(&config.Config{}); err != nil { // which tells all readers
		panic(err)
	}
}

// readiness returns the snapshot of a readiness probe of the period 1 s and the threshold 3
// after that many failures; after 0 failures it has succeeded.
func readiness(failures uint64) prober.ProbeStatus {
	p := prober.ProbeStatus{Kind: gate.Readiness, Period: time.Second, SuccessThreshold: 1, FailureThreshold: 3, Run: 1, Last: gate.Success, Result: gate.Success}
	if failures > 0 {
		p.Last, p.Run, p.ConsecutiveFailures, p.Reason = gate.Failure, int(failures), failures, "http_status" //nolint:gosec // few
		p.FirstFailure = &prober.Attempt{Start: time.Unix(1000, 0)}
		p.LastFailures = []prober.Attempt{{Outcome: prober.Failed, Output: "HTTP probe failed with statuscode: 500"}}
	}
	if failures >= 3 {
		p.Result = gate.Failure
	}
	return p
}

// running returns the snapshot of a target that has started.
func running(name string, probes ...prober.ProbeStatus) prober.TargetStatus {
	t := prober.TargetStatus{Name: name, Source: config.SourceStatic, Running: true, Started: true, Ready: true, Live: true, Probes: probes}
	for i := range probes {
		switch p := &probes[i]; {
		case p.Result == gate.Success:
		case p.Kind == gate.Startup:
			t.Started, t.Ready, t.Live = false, false, p.Result != gate.Failure
		case p.Kind == gate.Readiness:
			t.Ready = false
		case p.Kind == gate.Liveness:
			t.Live = false
		}
	}
	return t
}

func isReady(name string) prober.TargetStatus  { return running(name, readiness(0)) }
func notReady(name string) prober.TargetStatus { return running(name, readiness(3)) }

// world is a Writer in a bubble, with a scripted prober and a scripted API server.
type world struct {
	*Writer
	*apitest.Server
	t      *testing.T
	pod    *apitest.Pod
	prober *scripted
	logs   testutil.Log
	cfg    *config.Config
	begin  time.Time
	watch  *apitest.Call
}

const shopReady = "example.org/shop-ready"

// inBubble runs a test in a bubble; the Writer is not on yet.
func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := apitest.NewPiped(t)
		w := &world{Server: s, t: t, pod: apitest.NewPod(t, s), begin: time.Now()}
		w.prober = &scripted{Manager: prober.New(prober.Options{})}
		w.prober.status = prober.Status{SourceUp: map[string]bool{config.SourceStatic: true}, Statuses: []prober.TargetStatus{isReady("shop")}}
		w.cfg = &config.Config{Kubernetes: &config.Kubernetes{PodConditions: []config.PodCondition{{Type: shopReady, State: config.StateReady}}}}
		log := slog.New(slog.NewTextHandler(&w.logs, nil))
		pace := kubernetes.DefaultPace()
		pace.Watch = 24 * time.Hour // no watch ends during a test
		w.Writer = New(Options{Prober: w.prober, Pod: kubernetes.NewFollower(w.pod.Env(), pace, log), Logger: log})
		defer w.prober.Close()
		defer w.Close()
		test(w)
	})
}

// Close ends the Writer; the server ends with the test.
func (w *world) Close() { w.Writer.Close() }

// on turns the Writer on in a pod with these conditions, and returns the watch.
func (w *world) on(conditions ...string) *apitest.Call {
	w.t.Helper()
	w.Apply(w.cfg)
	w.Next(w.t, "get").Answer(200, podWith(conditions...))
	w.watch = w.Next(w.t, "10").Open()
	return w.watch
}

// Next is that of the server, with patience for the longest wait of a Writer.
func (w *world) Next(t *testing.T, want string) *apitest.Call {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case c := <-w.Calls:
		if got := c.Asks(); got != want {
			t.Fatalf("asked %s %s (%s), want %s", c.R.Method, c.R.URL, got, want)
		}
		return c
	case <-timer.C:
		t.Fatalf("waited a minute for a request: %s\n%s", want, w.logs.String())
		panic("unreachable")
	}
}

// podWith returns the pod web-0 with conditions.
func podWith(conditions ...string) string {
	return `{"kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"10"},"spec":{"nodeName":"node-1","containers":[{"name":"app"}]},` +
		`"status":{"phase":"Running","conditions":[` + strings.Join(conditions, ",") + `]}}`
}

// cond returns a condition as JSON.
func cond(kind, status, reason, message string, at time.Time) string {
	b, err := json.Marshal(kubernetes.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// patched waits for a patch of the status, which must have come at that time and must say
// "TYPE STATUS REASON MESSAGE"; it is not answered.
func (w *world) patched(at time.Duration, want ...string) (*apitest.Call, []kubernetes.PodCondition) {
	w.t.Helper()
	c := w.Next(w.t, "patch")
	if got := time.Since(w.begin); at >= 0 && got != at {
		w.t.Fatalf("patched at %v, want %v: %s", got, at, c.Body)
	}
	var patch struct {
		Metadata struct{ UID string }
		Status   struct{ Conditions []kubernetes.PodCondition }
	}
	if err := json.Unmarshal([]byte(c.Body), &patch); err != nil || patch.Metadata.UID != "u1" {
		w.t.Fatalf("patch %s (%v), want the UID u1", c.Body, err)
	}
	var got []string
	for _, is := range patch.Status.Conditions {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", is.Type, is.Status, is.Reason, is.Message)))
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("patched %q, want %q", got, want)
	}
	return c, patch.Status.Conditions
}

// takes is patched with an answer that takes the conditions, which the watch shows, too.
func (w *world) takes(at time.Duration, want ...string) []kubernetes.PodCondition {
	w.t.Helper()
	c, conditions := w.patched(at, want...)
	w.watch.Event("MODIFIED", take(c, conditions))
	return conditions
}

// take answers a patch with the pod that has the conditions, and returns the pod.
func take(c *apitest.Call, conditions []kubernetes.PodCondition) (pod string) {
	var now []string
	for _, is := range conditions {
		now = append(now, cond(is.Type, is.Status, is.Reason, is.Message, is.LastTransitionTime))
	}
	pod = podWith(now...)
	c.Answer(200, pod)
	return pod
}

// quiet wants no request for so long.
func (w *world) quiet(d time.Duration) {
	w.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case c := <-w.Calls:
		w.t.Fatalf("after %v: %s %s %s", time.Since(w.begin), c.R.Method, c.R.URL, c.Body)
	case <-timer.C:
	}
}

// sleepUntil sleeps until that long after the beginning.
func (w *world) sleepUntil(at time.Duration) { time.Sleep(time.Until(w.begin.Add(at))) }

// is wants the metric to be synced or not, and requests to be counted.
func (w *world) is(synced bool, conditions, failed uint64) {
	w.t.Helper()
	synctest.Wait()
	c, on := w.Counts()
	if !on || c.Synced != synced || c.ConditionsSucceeded != conditions || c.ConditionsFailed != failed {
		w.t.Errorf("after %v: on %v, %+v; want synced %v, %d written, %d failed", time.Since(w.begin), on, c, synced, conditions, failed)
	}
}

const (
	saysTrue  = shopReady + " True ProbesSucceeding"
	saysFalse = shopReady + " False ProbesFailing shop: readiness: http_status (3/3)"
)

// deleted returns a pod that is being deleted.
func deleted(pod string) string {
	return strings.Replace(pod, `"uid":"u1",`, `"uid":"u1","deletionTimestamp":"2026-11-21T12:00:30Z",`, 1)
}

// finish begins to finish, with a second for the last word.
func (w *world) finish() (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w.Finish(ctx)
	}()
	return done
}

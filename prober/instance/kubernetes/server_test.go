// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// podRun is a source under test that runs, in a pod of its own.
type podRun struct {
	*Source
	*apitest.Pod
	logs    chan string
	changes chan string
	stop    func() // waits for the end of Run
}

// newPodRun returns a source that has the target app and does not run yet. The source waits only for
// moments, unless a test sets another pace.
func newPodRun(t *testing.T, s *apitest.Server, set ...func(*kubernetes.Pace)) *podRun {
	t.Helper()
	r := &podRun{Pod: apitest.NewPod(t, s), logs: make(chan string, 1000), changes: make(chan string, 1000)}
	pace := kubernetes.DefaultPace()
	pace.RetryMin, pace.RetryMax = time.Millisecond, 4*time.Millisecond
	for _, f := range set {
		f(&pace)
	}
	log := slog.New(slog.NewTextHandler(r, nil))
	r.Source = New(kubernetes.NewFollower(r.Env(), pace, log), log)
	r.Watch(appTarget("app", "app"))
	return r
}

// Write receives a line of the log.
func (r *podRun) Write(line []byte) (int, error) {
	r.logs <- string(line)
	return len(line), nil
}

func (r *podRun) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, func(target string) {
			r.Instance(target) // as the manager does
			r.Describe(target)
			r.Up()
			r.changes <- target
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := testutil.Receive(t, done, "the end of Run"); err != nil {
			t.Errorf("Run: %v", err)
		}
		if r.Up() {
			t.Error("the source is up after the end of Run")
		}
	})
	t.Cleanup(r.stop)
}

// log waits for the next line, which must contain all of want and not the token.
func (r *podRun) log(t *testing.T, want ...string) {
	t.Helper()
	line := testutil.Receive(t, r.logs, strings.Join(want, " "))
	for _, w := range want {
		if !strings.Contains(line, w) {
			t.Fatalf("log %swant %q in it", line, w)
		}
	}
	if strings.Contains(line, "secret-") {
		t.Fatalf("a token in the log: %s", line)
	}
}

// quiet fails the test if a line of the log is waiting.
func (r *podRun) quiet(t *testing.T) {
	t.Helper()
	select {
	case line := <-r.logs:
		t.Fatalf("unwanted log: %s", line)
	default:
	}
}

// change waits until the source reports that app has changed.
func (r *podRun) change(t *testing.T) {
	t.Helper()
	if got := testutil.Receive(t, r.changes, "a change"); got != "app" {
		t.Fatalf("changed %q, want app", got)
	}
}

// seen returns a Follower that has seen a pod and does not follow the pod any more.
func seen(t *testing.T, pod string) *kubernetes.Follower {
	t.Helper()
	s := apitest.NewServer(t)
	own := kubernetes.NewFollower(apitest.NewPod(t, s).Env(), kubernetes.DefaultPace(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { own.Follow(ctx, func() {}) })
	s.Next(t, "get").Answer(200, pod)
	s.Next(t, "10")
	cancel()
	following.Wait()
	return own
}

func appTarget(name, container string) *config.Target {
	t := &config.Target{Name: name}
	t.Instance.Source, t.Instance.Container = config.SourceKubernetes, container
	return t
}

// podOf is the pod web-0 with the given version and status of its container app.
func podOf(version, status string) string {
	return `{"kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"` + version + `"},` +
		`"spec":{"restartPolicy":"Always","containers":[{"name":"app"}]},` +
		`"status":{"phase":"Running","containerStatuses":[` + status + `]}}`
}

const (
	runsA        = `{"name":"app","containerID":"containerd://a","started":true,"state":{"running":{"startedAt":"2026-11-21T12:00:00Z"}}}`
	endsA        = `{"name":"app","containerID":"containerd://a","state":{"terminated":{"exitCode":137,"reason":"OOMKilled","startedAt":"2026-11-21T12:00:00Z","containerID":"containerd://a"}}}`
	runsB        = `{"name":"app","containerID":"containerd://b","started":true,"state":{"running":{"startedAt":"2026-11-21T12:01:00Z"}}}`
	podForbidden = `{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}`
)

// newOtherServer returns a server with a certificate of its own.
func newOtherServer(t *testing.T) *apitest.Server {
	t.Helper()
	certificate, key, err := testutil.Certificate(net.IPv4(127, 0, 0, 1), net.IPv6loopback)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return apitest.NewServer(t, pair)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
)

const pod = `{"kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"10"},"spec":{},"status":{}}`

// reader follows a pod until stop, which waits for its end.
type reader struct {
	changes chan struct{}
	stop    func()
}

func follow(t *testing.T, f *kubernetes.Follower) *reader {
	t.Helper()
	r := &reader{changes: make(chan struct{}, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Follow(ctx, func() { r.changes <- struct{}{} })
	}()
	r.stop = func() {
		cancel()
		testutil.Receive(t, done, "the end of Follow")
	}
	t.Cleanup(r.stop)
	testutil.Receive(t, r.changes, "the first word")
	return r
}

func newFollower(t *testing.T, s *apitest.Server) *kubernetes.Follower {
	t.Helper()
	pace := kubernetes.DefaultPace()
	pace.RetryMin, pace.RetryMax = time.Millisecond, 4*time.Millisecond
	return kubernetes.NewFollower(apitest.NewPod(t, s).Env(), pace, slog.New(slog.DiscardHandler))
}

// 3 readers share one look and one watch, which lasts until the last reader ends. A reader that
// comes later has a look and a watch of its own. Without a reader there is no request and no
// goroutine.
func TestFollowersShareAWatch(t *testing.T) {
	before := runtime.NumGoroutine()
	s := apitest.NewServer(t)
	f := newFollower(t, s)
	if len(s.Calls) != 0 || f.Pod() != nil || f.Up() {
		t.Error("requests or goroutines before the first Follow")
	}
	first := follow(t, f)
	s.Next(t, "get").Answer(200, pod)
	testutil.Receive(t, first.changes, "the pod")
	watch := s.Next(t, "10").Open()
	testutil.Until(t, "up", f.Up)
	second, third := follow(t, f), follow(t, f)
	if f.Pod().Metadata.UID != "u1" {
		t.Errorf("a later reader sees %+v", f.Pod())
	}
	first.stop()
	watch.Event("MODIFIED", strings.Replace(pod, `"status":{}`, `"status":{"phase":"Running"}`, 1))
	testutil.Receive(t, second.changes, "a change")
	testutil.Receive(t, third.changes, "a change")
	if f.Pod().Status.Phase != "Running" || len(first.changes) != 0 {
		t.Errorf("the pod is %+v, with %d changes for a reader that has ended", f.Pod(), len(first.changes))
	}
	second.stop()
	if !f.Up() {
		t.Error("down although a reader is left")
	}
	third.stop()
	if f.Up() {
		t.Error("up although no reader is left")
	}
	testutil.Receive(t, watch.R.Context().Done(), "the end of the watch")

	again := follow(t, f)
	if f.Pod() == nil {
		t.Error("the Follower has forgotten the pod")
	}
	s.Next(t, "get").Answer(200, pod)
	s.Next(t, "10").Open()
	again.stop()
	s.Close()
	testutil.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// Readers that come and go at the same time leave no watch behind.
func TestFollowersComeAndGo(t *testing.T) {
	s := apitest.NewServer(t)
	f := newFollower(t, s)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case c := <-s.Calls:
				if c.Asks() == "get" {
					c.Answer(200, pod)
				} else {
					c.Open()
				}
			case <-stop:
				return
			}
		}
	}()
	defer close(stop)
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 25 {
				ctx, cancel := context.WithCancel(t.Context())
				f.Follow(ctx, cancel)
			}
		}()
	}
	for range 4 {
		testutil.Receive(t, done, "the end of 25 readers")
	}
	if f.Up() {
		t.Error("up although no reader is left")
	}
	follow(t, f)
	testutil.Until(t, "up", f.Up)
}

// A later reader does not ask again for a pod that is gone.
func TestFollowersOfAPodThatIsGone(t *testing.T) {
	s := apitest.NewServer(t)
	f := newFollower(t, s)
	r := follow(t, f)
	s.Next(t, "get").Answer(200, pod)
	s.Next(t, "10").Open().Event("DELETED", pod)
	testutil.Until(t, "gone", func() bool { p := f.Pod(); return p != nil && p.Gone })
	r.stop()
	follow(t, f)
	testutil.Until(t, "up, as nothing can be missed", f.Up)
	if len(s.Calls) != 0 {
		t.Error("a later reader asks again")
	}
}

// A write has its path, its type and its body. The error for a refusal names the missing
// permission or the kind of trouble.
func TestWrites(t *testing.T) {
	s := apitest.NewServer(t)
	f := newFollower(t, s)
	c := f.Client()
	defer c.Close()
	self, err := c.Self()
	if err != nil {
		t.Fatal(err)
	}
	const strategic = "application/strategic-merge-patch+json"
	body := map[string]string{"a": "b"}
	writes := []struct {
		ask, sort, rule string
		write           func() error
	}{
		{"patch", strategic, `{apiGroups: [""], resources: [pods/status], resourceNames: [web-0], verbs: [patch]}`, func() error {
			var after kubernetes.Pod
			err := c.PatchStatus(t.Context(), self, body, &after)
			if err == nil && after.Metadata.UID != "u1" {
				t.Errorf("the pod is %+v", after)
			}
			return err
		}},
		{"event", "application/json", `{apiGroups: [""], resources: [events], verbs: [create]}`, func() error { return c.CreateEvent(t.Context(), self, body) }},
		{"web-0.1", strategic, `{apiGroups: [""], resources: [events], verbs: [patch]}`, func() error { return c.PatchEvent(t.Context(), self, "web-0.1", body) }},
	}
	for _, tt := range writes {
		for _, answer := range []struct {
			code    int
			body    string
			trouble kubernetes.Trouble // 0: none
			says    string
		}{
			{200, pod, 0, ""},
			{201, pod, 0, ""},
			{403, `{"message":"no"}`, kubernetes.TroubleForbidden, tt.rule},
			{404, `{"kind":"Status","reason":"NotFound","message":"not there"}`, kubernetes.TroubleMissing, ""},
			{409, "", kubernetes.TroubleConflict, "answers 409"},
			{422, `{"kind":"Status","message":"denied by a policy of secret-1"}`, kubernetes.TroubleInvalid, "denied by a policy of [token]"},
			{500, "", kubernetes.TroubleAnswer, "answers 500"},
			{200, "<html>", kubernetes.TroubleAnswer, "invalid character"},
		} {
			ended := make(chan error, 1)
			go func() { ended <- tt.write() }()
			call := s.Next(t, tt.ask)
			if got := call.R.Header.Get("Content-Type"); got != tt.sort || call.Body != `{"a":"b"}` || call.R.Header.Get("Authorization") != "Bearer secret-1" {
				t.Errorf("%s: %s of %s", tt.ask, call.Body, got)
			}
			call.Answer(answer.code, answer.body)
			err := testutil.Receive(t, ended, "the end of the write")
			e, failed := errors.AsType[*kubernetes.Error](err)
			if failed != (answer.trouble != 0) || failed && (e.Trouble != answer.trouble || !strings.Contains(e.Error(), answer.says) || strings.Contains(e.Error(), "secret-1")) {
				t.Errorf("%s, %d: %v, want %q", tt.ask, answer.code, err, answer.says)
			}
		}
	}
}

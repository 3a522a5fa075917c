// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// podAnswers are answers that are not what was asked for, and what the log says of them.
var podAnswers = []struct {
	name   string
	code   int
	body   string
	header string
	want   string
}{
	{"401", 401, `{"kind":"Status","message":"Unauthorized"}`, "", "does not accept the service account's token (401)"},
	{"403", 403, podForbidden, "", `lacks the rule {apiGroups: [\"\"], resources: [pods], resourceNames: [web-0], verbs: [VERB]}`},
	{"404 of something else", 404, "404 page not found", "", "answers 404"},
	{"500 without a message", 500, `{}`, "", "500 Internal Server Error"},
	{"503", 503, "no backend", "", "answers 503"},
	{"a redirect", 302, "", "https://192.0.2.1/", "answers 302"},
	{"the token in the answer", 418, `{"message":"I saw secret-1 ` + strings.Repeat("x", 1000) + `"}`, "", "I saw [token]"},
}

// A look that is answered with anything but the pod: no instance, down, and 1 warning for
// 3 answers of the kind that says what to do; then the pod, up, and 1 line.
func TestKubernetesLookInTrouble(t *testing.T) {
	for _, tt := range append(podAnswers, []struct {
		name   string
		code   int
		body   string
		header string
		want   string
	}{
		{"404", 404, `{"kind":"Status","reason":"NotFound","message":"pods \"web-0\" not found"}`, "", `pod \"web-0\" (from POD_NAME) in namespace \"shop\" (from `},
		{"garbage", 200, "<html>", "", "invalid character"},
		{"another type", 200, `{"metadata":{"uid":7}}`, "", "cannot unmarshal"},
		{"half a pod", 200, podOf("10", runsA)[:200], "", "unexpected EOF"},
		{"no pod", 200, `{"kind":"Status"}`, "", "the answer is not a pod"},
		{"a huge one", 200, `{"metadata":{"x":"` + strings.Repeat("y", kubernetes.MaxObject) + `"}}`, "", "larger than 4194304 bytes"},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			s := newPodServer(t)
			r := newPodRun(t, s)
			r.start(t)
			for range 3 {
				c := s.next(t, "get")
				if tt.header != "" {
					c.acts <- func(w http.ResponseWriter) { w.Header().Set("Location", tt.header) }
				}
				c.answer(tt.code, tt.body)
			}
			r.log(t, "level=WARN", "cannot watch the pod", strings.ReplaceAll(tt.want, "VERB", "get"))
			if r.Up() || r.Instance("app") != (gate.Instance{}) {
				t.Errorf("up %v, instance %+v; want down and none", r.Up(), r.Instance("app"))
			}
			s.next(t, "get").answer(200, podOf("10", runsA))
			s.next(t, "10").open()
			r.log(t, "level=INFO", "watching the pod")
			r.want(t, "containerd://a", gate.Running)
		})
	}
}

// A watch that is answered with anything but events: the last view stays, 1 warning, and
// each further try looks first, which keeps the view fresh.
func TestKubernetesWatchInTrouble(t *testing.T) {
	for _, tt := range podAnswers {
		t.Run(tt.name, func(t *testing.T) {
			s := newPodServer(t)
			r := newPodRun(t, s)
			r.start(t)
			s.next(t, "get").answer(200, podOf("10", runsA))
			c := s.next(t, "10")
			if tt.header != "" {
				c.acts <- func(w http.ResponseWriter) { w.Header().Set("Location", tt.header) }
			}
			c.answer(tt.code, tt.body)
			r.log(t, "level=WARN", strings.ReplaceAll(tt.want, "VERB", "watch"))
			c = s.next(t, "get")
			if r.want(t, "containerd://a", gate.Running); r.Up() {
				t.Error("up without a watch")
			}
			c.answer(200, podOf("11", endsA))
			c = s.next(t, "11")
			r.want(t, "containerd://a", gate.Terminated)
			c.answer(tt.code, tt.body)
			s.next(t, "get").answer(200, podOf("12", runsB))
			s.next(t, "12").open()
			r.log(t, "level=INFO", "watching the pod")
			r.want(t, "containerd://b", gate.Running)
		})
	}
}

// 410 Gone, as an answer or as an event, leads to a look at once and in silence; the
// second in a row waits and is said.
func TestKubernetesExpiry(t *testing.T) {
	const gone = `{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 10 (99)"}`
	for _, first := range []string{"answer", "event"} {
		s := newPodServer(t)
		r := newPodRun(t, s)
		r.retryMin, r.retryMax = 50*time.Millisecond, 50*time.Millisecond
		r.start(t)
		s.next(t, "get").answer(200, podOf("10", runsA))
		w := s.next(t, "10")
		began := time.Now()
		if first == "answer" {
			w.answer(410, gone)
		} else {
			w.open().event("ERROR", gone)
			r.log(t, "watching the pod")
		}
		s.next(t, "get").answer(200, podOf("20", runsB))
		r.quiet(t)
		s.next(t, "20").answer(410, gone)
		r.log(t, "level=WARN", "too old resource version")
		s.next(t, "get")
		if took := time.Since(began); took < 25*time.Millisecond {
			t.Errorf("by %s: the third look after %v, want a wait of at least 25 ms", first, took)
		}
		r.want(t, "containerd://b", gate.Running)
	}
}

// What is no event ends a watch, and the next look begins anew; the view stays and the
// source is down until it watches again.
func TestKubernetesBadEvents(t *testing.T) {
	for _, tt := range []struct{ name, event, want string }{
		{"garbage", "<html>\n", "invalid character"},
		{"a huge event", `{"type":"MODIFIED","object":{"x":"` + strings.Repeat("y", kubernetes.MaxObject) + `"}}`, "larger than 4194304 bytes"},
		{"a pod that is none", `{"type":"MODIFIED","object":"pod"}`, "cannot unmarshal"},
		{"no object", `{"type":"MODIFIED"}`, "EOF"},
		{"a time that is none", `{"type":"MODIFIED","object":{"metadata":{"uid":"u1","resourceVersion":"11","deletionTimestamp":"soon"}}}`, "parsing time"},
		{"no version", `{"type":"MODIFIED","object":{"metadata":{"uid":"u1"}}}`, "without a version"},
		{"an error", `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"storage is gone"}}`, "storage is gone"},
		{"an error that is none", `{"type":"ERROR","object":[]}`, "cannot unmarshal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newPodServer(t)
			r := newPodRun(t, s)
			r.start(t)
			s.next(t, "get").answer(200, podOf("10", runsA))
			w := s.next(t, "10").open()
			r.log(t, "watching the pod")
			w.send(tt.event)
			r.log(t, "level=WARN", tt.want)
			c := s.next(t, "get")
			if r.want(t, "containerd://a", gate.Running); r.Up() {
				t.Error("up without a watch")
			}
			c.answer(200, podOf("12", runsB))
			s.next(t, "12").open()
			r.log(t, "level=INFO", "watching the pod")
		})
	}
}

// A watch that is cut off, in the middle of an event too, goes on from the last version in
// silence; the second in a row that has not lasted is said, and looks from then on; one
// that lasts, with an event to show for it, ends the trouble.
func TestKubernetesCutOff(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.lasting = 50 * time.Millisecond
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA))
	w := s.next(t, "10").open()
	r.log(t, "watching the pod")
	w.event("MODIFIED", podOf("11", runsA))
	w.send(`{"type":"MODIFIED","object":{"metadata":`)
	w.cut()
	w = s.next(t, "11").open()
	r.quiet(t)
	if !r.Up() {
		t.Error("down after the first cut")
	}
	w.end()
	r.log(t, "level=WARN", "cut off again and again")
	for range 3 {
		s.next(t, "get").answer(200, podOf("12", runsB))
		w = s.next(t, "12").open()
		if r.Up() {
			t.Error("up by a watch that has not lasted")
		}
		w.cut()
	}
	s.next(t, "get").answer(200, podOf("13", runsB))
	w = s.next(t, "13").open()
	testutil.Until(t, "a watch that lasts is up", func() bool {
		w.event("BOOKMARK", podOf("14", ""))
		return r.Up()
	})
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://b", gate.Running)
	w.cut()
	s.next(t, "14")
	r.quiet(t)
}

// A server that hangs is noticed: in a look and before a watch after a second without an
// answer, in a watch when its time and 20 ms more are over, which is no trouble.
func TestKubernetesHangingServer(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.request, r.watch, r.grace, r.lasting = time.Second, 20*time.Millisecond, 20*time.Millisecond, 0
	r.start(t)
	s.next(t, "get")
	r.log(t, "level=WARN", "cannot watch the pod", "get pod") // which of two timers was first is not said here
	s.next(t, "get").answer(200, podOf("10", runsA))
	w := s.next(t, "10").open()
	r.log(t, "level=INFO", "watching the pod")
	if got := w.r.URL.Query().Get("timeoutSeconds"); got != "1" {
		t.Errorf("timeoutSeconds %s, want 1: a whole number above 0", got)
	}
	s.next(t, "10") // the second watch hangs before its answer
	r.log(t, "level=WARN", "watch pod")
	s.next(t, "10").open()
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://a", gate.Running)
}

// A server that goes away is said once for all its refused connections, the view stays,
// and the watch goes on from the last version at the one that comes back.
func TestKubernetesServerRestart(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.next(t, "get").answer(200, podOf("10", runsA))
	w := s.next(t, "10").open()
	r.log(t, "level=INFO", "watching the pod")
	s.Listener.Close()
	w.cut()
	r.log(t, "level=WARN", "connection refused")
	if r.want(t, "containerd://a", gate.Running); r.Up() {
		t.Error("up without a server")
	}
	again := newPodServer(t)
	r.at(t, again)
	again.next(t, "10").open()
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://a", gate.Running)
}

// Each failure doubles the wait, from 0.2 s to 30 s, of which up to a half is left to
// chance; a server that asks for longer gets it.
func TestKubernetesBackOff(t *testing.T) {
	f := follower{source: New(slog.New(slog.DiscardHandler))}
	for failures, want := range []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
		6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 30 * time.Second, 30 * time.Second,
	} {
		for range 100 {
			if got := f.backOff(failures); got < want/2 || got > want {
				t.Fatalf("after %d failures %v, want %v to %v", failures, got, want/2, want)
			}
		}
	}
	if got := f.backOff(1000); got < 15*time.Second {
		t.Errorf("after 1000 failures %v", got)
	}
	for after, most := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, time.Minute: time.Minute, 0: time.Second} {
		f.failures = 0
		e := kubernetes.Errorf(kubernetes.TroubleAnswer, "asks for %v", after)
		e.After = after
		if got := f.rest(e); got < after || got > most {
			t.Errorf("the server asks for %v: rests %v", after, got)
		}
	}
}

// A watch that has lasted may expire any number of times: 5 times each is looked after at
// once, though a wait would be an hour, and none is said.
func TestKubernetesExpiryOfALongWatch(t *testing.T) {
	s := newPodServer(t)
	r := newPodRun(t, s)
	r.lasting, r.retryMin, r.retryMax = 0, time.Hour, time.Hour
	r.start(t)
	for i := range 5 {
		s.next(t, "get").answer(200, podOf("10", runsA))
		w := s.next(t, "10").open()
		if i == 0 {
			r.log(t, "level=INFO", "watching the pod")
		}
		w.event("ERROR", `{"kind":"Status","code":410}`)
	}
	s.next(t, "get")
	r.quiet(t)
	if !r.Up() {
		t.Error("down after an ordinary expiry")
	}
}

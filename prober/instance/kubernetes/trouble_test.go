// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/apitest"
	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// podAnswers are answers without the pod, and what the log says of each.
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

// If the answer to a look is not the pod, there is no instance, and the source is down. For 3 such
// answers of one kind there is 1 warning, which says what to do. With the pod, the source is up and
// logs 1 line.
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
			s := apitest.NewServer(t)
			r := newPodRun(t, s)
			r.start(t)
			for range 3 {
				c := s.Next(t, "get")
				if tt.header != "" {
					c.Acts <- func(w http.ResponseWriter) { w.Header().Set("Location", tt.header) }
				}
				c.Answer(tt.code, tt.body)
			}
			r.log(t, "level=WARN", "cannot watch the pod", strings.ReplaceAll(tt.want, "VERB", "get"))
			if r.Up() || r.Instance("app") != (gate.Instance{}) {
				t.Errorf("up %v, instance %+v; want down and none", r.Up(), r.Instance("app"))
			}
			s.Next(t, "get").Answer(200, podOf("10", runsA))
			s.Next(t, "10").Open()
			r.log(t, "level=INFO", "watching the pod")
			r.want(t, "containerd://a", gate.Running)
		})
	}
}

// If the answer to a watch is not events, the last view stays, and there is 1 warning. Each further
// try looks first, which keeps the view fresh.
func TestKubernetesWatchInTrouble(t *testing.T) {
	for _, tt := range podAnswers {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.NewServer(t)
			r := newPodRun(t, s)
			r.start(t)
			s.Next(t, "get").Answer(200, podOf("10", runsA))
			c := s.Next(t, "10")
			if tt.header != "" {
				c.Acts <- func(w http.ResponseWriter) { w.Header().Set("Location", tt.header) }
			}
			c.Answer(tt.code, tt.body)
			r.log(t, "level=WARN", strings.ReplaceAll(tt.want, "VERB", "watch"))
			c = s.Next(t, "get")
			if r.want(t, "containerd://a", gate.Running); r.Up() {
				t.Error("the source is up without a watch")
			}
			c.Answer(200, podOf("11", endsA))
			c = s.Next(t, "11")
			r.want(t, "containerd://a", gate.Terminated)
			c.Answer(tt.code, tt.body)
			s.Next(t, "get").Answer(200, podOf("12", runsB))
			s.Next(t, "12").Open()
			r.log(t, "level=INFO", "watching the pod")
			r.want(t, "containerd://b", gate.Running)
		})
	}
}

// After 410 Gone, as an answer or as an event, the source looks at once and logs nothing. After the
// second in a row, the source waits and logs a line.
func TestKubernetesExpiry(t *testing.T) {
	const gone = `{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 10 (99)"}`
	for _, first := range []string{"answer", "event"} {
		s := apitest.NewServer(t)
		r := newPodRun(t, s, func(p *kubernetes.Pace) { p.RetryMin, p.RetryMax = 50*time.Millisecond, 50*time.Millisecond })
		r.start(t)
		s.Next(t, "get").Answer(200, podOf("10", runsA))
		w := s.Next(t, "10")
		began := time.Now()
		if first == "answer" {
			w.Answer(410, gone)
		} else {
			w.Open().Event("ERROR", gone)
			r.log(t, "watching the pod")
		}
		s.Next(t, "get").Answer(200, podOf("20", runsB))
		r.quiet(t)
		s.Next(t, "20").Answer(410, gone)
		r.log(t, "level=WARN", "too old resource version")
		s.Next(t, "get")
		if took := time.Since(began); took < 25*time.Millisecond {
			t.Errorf("by %s: the third look after %v, want a wait of at least 25 ms", first, took)
		}
		r.want(t, "containerd://b", gate.Running)
	}
}

// Anything but an event ends a watch, and the source looks again. The view stays, and the source is
// down until the next watch.
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
			s := apitest.NewServer(t)
			r := newPodRun(t, s)
			r.start(t)
			s.Next(t, "get").Answer(200, podOf("10", runsA))
			w := s.Next(t, "10").Open()
			r.log(t, "watching the pod")
			w.Send(tt.event)
			r.log(t, "level=WARN", tt.want)
			c := s.Next(t, "get")
			if r.want(t, "containerd://a", gate.Running); r.Up() {
				t.Error("the source is up without a watch")
			}
			c.Answer(200, podOf("12", runsB))
			s.Next(t, "12").Open()
			r.log(t, "level=INFO", "watching the pod")
		})
	}
}

// After a watch that is cut off, even in the middle of an event, the next watch begins at the last
// version, and the source logs nothing. After the second short watch in a row, the source logs a line
// and looks before each watch. A watch that lasts and has an event ends the trouble.
func TestKubernetesCutOff(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s, func(p *kubernetes.Pace) { p.Lasting = 50 * time.Millisecond })
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	w := s.Next(t, "10").Open()
	r.log(t, "watching the pod")
	w.Event("MODIFIED", podOf("11", runsA))
	w.Send(`{"type":"MODIFIED","object":{"metadata":`)
	w.Cut()
	w = s.Next(t, "11").Open()
	r.quiet(t)
	if !r.Up() {
		t.Error("the source is down after the first cut")
	}
	w.End()
	r.log(t, "level=WARN", "cut off again and again")
	for range 3 {
		s.Next(t, "get").Answer(200, podOf("12", runsB))
		w = s.Next(t, "12").Open()
		if r.Up() {
			t.Error("the source is up after a watch that did not last")
		}
		w.Cut()
	}
	s.Next(t, "get").Answer(200, podOf("13", runsB))
	w = s.Next(t, "13").Open()
	testutil.Until(t, "a watch that lasts is up", func() bool {
		w.Event("BOOKMARK", podOf("14", ""))
		return r.Up()
	})
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://b", gate.Running)
	w.Cut()
	s.Next(t, "14")
	r.quiet(t)
}

// The source notices a server that hangs: in a look and before a watch after a second without an
// answer, and in a watch 20 ms after its time is over. The latter is no trouble.
func TestKubernetesHangingServer(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s, func(p *kubernetes.Pace) {
		p.Request, p.Watch, p.Grace, p.Lasting = time.Second, 20*time.Millisecond, 20*time.Millisecond, 0
	})
	r.start(t)
	s.Next(t, "get")
	r.log(t, "level=WARN", "cannot watch the pod", "get pod") // whichever of two timers fires first
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	w := s.Next(t, "10").Open()
	r.log(t, "level=INFO", "watching the pod")
	if got := w.R.URL.Query().Get("timeoutSeconds"); got != "1" {
		t.Errorf("timeoutSeconds is %s, want 1: a whole number above 0", got)
	}
	s.Next(t, "10") // the second watch hangs before its answer
	r.log(t, "level=WARN", "watch pod")
	s.Next(t, "10").Open()
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://a", gate.Running)
}

// While a server is away, the source logs one line for all refused connections, and the view stays.
// When the server is back, the watch goes on from the last version.
func TestKubernetesServerRestart(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s)
	r.start(t)
	s.Next(t, "get").Answer(200, podOf("10", runsA))
	w := s.Next(t, "10").Open()
	r.log(t, "level=INFO", "watching the pod")
	s.Listener.Close()
	w.Cut()
	r.log(t, "level=WARN", "connection refused")
	if r.want(t, "containerd://a", gate.Running); r.Up() {
		t.Error("the source is up without a server")
	}
	again := apitest.NewServer(t)
	r.At(t, again)
	again.Next(t, "10").Open()
	r.log(t, "level=INFO", "watching the pod")
	r.want(t, "containerd://a", gate.Running)
}

// A watch that has lasted may expire any number of times. Each of 5 times the source looks at once,
// although a wait would take an hour, and logs nothing.
func TestKubernetesExpiryOfALongWatch(t *testing.T) {
	s := apitest.NewServer(t)
	r := newPodRun(t, s, func(p *kubernetes.Pace) { p.Lasting, p.RetryMin, p.RetryMax = 0, time.Hour, time.Hour })
	r.start(t)
	for i := range 5 {
		s.Next(t, "get").Answer(200, podOf("10", runsA))
		w := s.Next(t, "10").Open()
		if i == 0 {
			r.log(t, "level=INFO", "watching the pod")
		}
		w.Event("ERROR", `{"kind":"Status","code":410}`)
	}
	s.Next(t, "get")
	r.quiet(t)
	if !r.Up() {
		t.Error("the source is down after an ordinary expiry")
	}
}

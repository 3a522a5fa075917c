// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/agent/healthcheck/failopen"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

const verdict = "[-]app failed: liveness: http_status (3/3)\nlive check failed\n"

// The client asks every 100 ms for 5 s, then every second, until the time is over. The client waits
// for an answer for a second, or for the rest of the time if that is shorter.
func TestPollRhythm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var asked, patience []time.Duration
		_, ok := poll(t.Context(), 8500*time.Millisecond, io.Discard, func(d time.Duration) failopen.Answer {
			asked, patience = append(asked, time.Since(begin)), append(patience, d)
			return failopen.Answer{Status: "503"}
		})
		var want []time.Duration
		for i := range 50 {
			want = append(want, time.Duration(i)*100*time.Millisecond)
		}
		want = append(want, 5*time.Second, 6*time.Second, 7*time.Second, 8*time.Second)
		if ok || !slices.Equal(asked, want) {
			t.Errorf("ok %t, asked at %v, want %v", ok, asked, want)
		}
		if patience[0] != time.Second || patience[len(patience)-1] != 500*time.Millisecond {
			t.Errorf("the patience is %v", patience)
		}
	})
}

// After an answer that took longer than the pause, the client asks again at once. The end of the
// context ends the wait.
func TestPollSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2450*time.Millisecond)
		defer cancel()
		begin := time.Now()
		var asked []time.Duration
		_, ok := poll(ctx, time.Hour, io.Discard, func(d time.Duration) failopen.Answer {
			asked = append(asked, time.Since(begin))
			if len(asked) < 3 {
				time.Sleep(d)
			}
			return failopen.Answer{Problem: failopen.Late(d)}
		})
		want := []time.Duration{0, time.Second, 2 * time.Second, 2100 * time.Millisecond, 2200 * time.Millisecond, 2300 * time.Millisecond, 2400 * time.Millisecond}
		if took := time.Since(begin); ok || took != 2450*time.Millisecond || !slices.Equal(asked, want) {
			t.Errorf("ok %t, took %v, asked at %v, want %v", ok, took, asked, want)
		}
	})
}

// The end of the time cuts a question short. The answer before decides.
func TestPollCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		questions := 0
		var said strings.Builder
		last, ok := poll(t.Context(), 1500*time.Millisecond, &said, func(d time.Duration) failopen.Answer {
			if questions++; questions == 1 {
				time.Sleep(900 * time.Millisecond)
				return failopen.Answer{Status: "503", Body: verdict}
			}
			time.Sleep(d)
			return failopen.Answer{Problem: failopen.Late(d)}
		})
		if ok || questions != 2 || !last.Fails() || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("ok %t, %d questions, %+v, said %s", ok, questions, last, said.String())
		}
	})
}

// A line goes to stderr when the answer has changed, and only then.
func TestPollTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []failopen.Answer{
			{Problem: failopen.Refused},
			{Problem: failopen.Refused},
			{Status: "503", Body: "[-]db failed: startup: timeout (0/30)\nready check failed\n"},
			{Status: "503", Body: "[-]db failed: startup: timeout (0/30)\nready check failed\n"},
			{Status: "502", Body: "\x1b[31m" + strings.Repeat("x", 10_000)},
			{Status: "200", Body: "ok\n"},
			{Status: "500"},
		}
		var said strings.Builder
		last, ok := poll(t.Context(), time.Minute, &said, func(time.Duration) failopen.Answer {
			a := answers[0]
			answers = answers[1:]
			return a
		})
		if !ok || last.Body != "ok\n" || len(answers) != 1 {
			t.Errorf("ok %t, %+v, %d left", ok, last, len(answers))
		}
		const mark = "prober_exporter: --health.check.wait: after "
		want := mark + "0.0 s: nobody answers: connection refused\n" +
			mark + "0.2 s: 503: [-]db failed: startup: timeout (0/30); ready check failed\n" +
			mark + "0.4 s: 502: ?[31m" + strings.Repeat("x", 295) + "\n" +
			mark + "0.5 s: 200: ok\n"
		if said.String() != want {
			t.Errorf("said %s, want %s", said.String(), want)
		}
	})
}

// When the time is over, the last answer decides. Without fail-open any answer but 200 fails the
// check; with fail-open only a verdict does.
func TestAskUntil(t *testing.T) {
	for _, c := range []struct {
		status        int
		body          string
		plain, opened error
		stdout, said  string
	}{
		{200, "ok\n", nil, nil, "ok\n", "200: ok\n"},
		{503, verdict, ErrFails, ErrFails, verdict, "503: [-]app failed: liveness: http_status (3/3); live check failed\n"},
		{503, "busy\n", ErrFails, nil, "", "503: busy\n"},
		{404, "[-]app unknown target\n", ErrFails, nil, "", "404: [-]app unknown target\n"},
	} {
		for _, failOpen := range []bool{false, true} {
			t.Run(fmt.Sprint(c.status, failOpen), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}))
				defer server.Close()
				var stdout, stderr strings.Builder
				err := AskUntil(t.Context(), server.URL, 2*time.Second, failOpen, &stdout, &stderr)
				want, printed := c.plain, ""
				if failOpen {
					want, printed = c.opened, c.stdout
				}
				if c.status == 200 {
					printed = c.stdout
				}
				if !errors.Is(err, want) || stdout.String() != printed || !strings.Contains(stderr.String(), c.said) {
					t.Errorf("%d, fail open %t: %v, printed %q, said %q", c.status, failOpen, err, stdout.String(), stderr.String())
				}
				if over := strings.HasSuffix(stderr.String(), "no answer 200 within 2s\n"); over != (err != nil && !failOpen) {
					t.Errorf("%d, fail open %t: said %q", c.status, failOpen, stderr.String())
				}
			})
		}
	}
}

// If there is no answer, the client says in one line what happened: without the URL, which may have
// a password, and without the client's port, which differs each time.
func TestAskFailOpenInVain(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, verdict)
	}))
	defer cut.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	for url, want := range map[string]string{
		"http://u:secret@127.0.0.1:" + testutil.Port(t): "nobody answers: connection refused",
		broken.URL:                         "no answer: EOF",
		cut.URL:                            "no answer: unexpected EOF",
		silent.URL:                         "no answer in time: waited 1s",
		"https" + broken.URL[len("http"):]: "no answer: http: server gave HTTP response to HTTPS client",
		"nonsense://":                      "nobody is asked: must be an http or https URL with a host",
		"http://u:secret@bad host":         "nobody is asked: invalid character \" \" in host name",
		"":                                 "nobody is asked: must be an http or https URL with a host",
	} {
		var stdout, stderr strings.Builder
		patience := time.Minute
		if url == silent.URL {
			patience = time.Second
		}
		err := AskFailOpen(t.Context(), url, patience, &stdout, &stderr)
		if said := stderr.String(); err != nil || stdout.Len() > 0 || said != "prober_exporter: --health.check.fail-open: exit with 0: "+want+"\n" {
			t.Errorf("%s: %v, printed %q, said %q, want %q", url, err, stdout.String(), said, want)
		}
	}
}

// The agent takes the question of a client in a container for a kubelet's question. A client that
// waits may run before the container's program or elsewhere, so its question does not count.
func TestUserAgents(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.UserAgent() }))
	defer server.Close()
	if err := AskFailOpen(t.Context(), server.URL, time.Minute, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := testutil.Receive(t, asked, "a question"); got != failopen.UserAgent {
		t.Errorf("--health.check.fail-open calls itself %q", got)
	}
	if err := AskUntil(t.Context(), server.URL, time.Minute, true, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := testutil.Receive(t, asked, "a question"); got != "prober_exporter" {
		t.Errorf("--health.check.wait calls itself %q", got)
	}
}

// A long answer, in which an agent lists all targets, is a verdict, too.
func TestAskFailOpenLong(t *testing.T) {
	long := strings.Repeat("[+]app ok, since 2026-11-22T04:13:11Z\n", 10_000) + verdict
	for body, want := range map[string]error{verdict: ErrFails, long: ErrFails, strings.Repeat(long, 10): nil} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, body)
		}))
		var stdout, stderr strings.Builder
		if err := AskFailOpen(t.Context(), server.URL, time.Minute, &stdout, &stderr); !errors.Is(err, want) || (stderr.Len() > 0) != (want == nil) {
			t.Errorf("%d bytes: %v, said %q", len(body), err, stderr.String())
		}
		server.Close()
	}
}

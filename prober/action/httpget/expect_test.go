// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// codes returns the status ranges of the given ends.
func codes(ends ...int) (list []config.StatusRange) {
	for i := 0; i < len(ends); i += 2 {
		list = append(list, config.StatusRange{From: ends[i], To: ends[i+1]})
	}
	return list
}

// answering is a server that answers as the query says: with a status, a body, and headers.
func answering(t *testing.T) string {
	t.Helper()
	return actiontest.Web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, value := range r.URL.Query()["version"] {
			w.Header().Add("X-Version", value)
		}
		if to := r.FormValue("to"); to != "" {
			w.Header().Set("Location", to)
		}
		if code, _ := strconv.Atoi(r.FormValue("code")); code != 0 {
			w.WriteHeader(code)
		}
		io.WriteString(w, r.FormValue("body"))
	}))
}

// All that is expected must hold. The outcome says what does not, and its reason is that of the first.
func TestExpect(t *testing.T) {
	address := answering(t)
	up, down := regexp.MustCompile(`"status":\s*"UP"`), regexp.MustCompile(`(?i)maintenance`)
	header := []config.ExpectHeader{{Name: "x-version", Matches: regexp.MustCompile(`^2\.`)}}
	const wantUp = `the body does not match bodyMatches "\"status\":\\s*\"UP\""`
	for _, c := range []struct {
		about  string
		expect config.Expect
		query  string
		reason action.Reason // "" for success
		output string
	}{
		{"a body", config.Expect{BodyMatches: up}, `body={"status": "UP"}`, "", `{"status": "UP"}`},
		{"another body", config.Expect{BodyMatches: up}, "body=no", action.HTTPBody, wantUp},
		{"no body", config.Expect{BodyMatches: up}, "", action.HTTPBody, wantUp},
		{"not that body", config.Expect{BodyDoesNotMatch: down}, "body=Maintenance", action.HTTPBody, `the body matches bodyDoesNotMatch "(?i)maintenance"`},
		{"not that body, and it is not", config.Expect{BodyDoesNotMatch: down}, "body=ok", "", "ok"},
		{"a body of a failure", config.Expect{BodyMatches: up}, `code=500&body="status":"UP"`, action.HTTPStatus, "HTTP probe failed with statuscode: 500"},
		{"a status", config.Expect{StatusCodes: codes(404, 404)}, "code=404&body=x", "", "x"},
		{"a status in a range", config.Expect{StatusCodes: codes(200, 299, 400, 499)}, "code=499", "", ""},
		{"another status", config.Expect{StatusCodes: codes(200, 204, 307, 307)}, "code=205", action.HTTPStatus, "HTTP probe failed with statuscode: 205, expected 200-204, 307"},
		{"the kubelet's status", config.Expect{StatusCodes: codes(404, 404)}, "", action.HTTPStatus, "HTTP probe failed with statuscode: 200, expected 404"},
		{"a header", config.Expect{Headers: header}, "version=2.1", "", ""},
		{"one of two values", config.Expect{Headers: header}, "version=1.0&version=2.0", "", ""},
		{"a value at the end of 10 KiB", config.Expect{Headers: header}, "version=" + strings.Repeat("1", action.MaxOutput-2) + "&version=2.0", "", ""},
		{"a value beyond 10 KiB", config.Expect{Headers: header}, "version=" + strings.Repeat("1", action.MaxOutput-1) + "&version=2.0", action.HTTPHeader, `the header x-version does not match "^2\\."`},
		{"another header", config.Expect{Headers: header}, "version=1.2.", action.HTTPHeader, `the header x-version does not match "^2\\."`},
		{"no header", config.Expect{Headers: header}, "", action.HTTPHeader, "the answer has no header x-version"},
		{
			"all wrong",
			config.Expect{StatusCodes: codes(200, 200), BodyMatches: up, BodyDoesNotMatch: down, Headers: header},
			"code=503&body=maintenance", action.HTTPStatus,
			"HTTP probe failed with statuscode: 503, expected 200; " + wantUp + `; the body matches bodyDoesNotMatch "(?i)maintenance"; the answer has no header x-version`,
		},
		{"all right", config.Expect{StatusCodes: codes(503, 503), BodyMatches: up, BodyDoesNotMatch: down, Headers: header}, `code=503&version=2.&body="status":"UP"`, "", `"status":"UP"`},
	} {
		got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/?" + strings.ReplaceAll(c.query, " ", "%20"), Expect: &c.expect}))
		if got.Success != (c.reason == "") || got.Reason != c.reason || got.Output != c.output || got.Warning {
			t.Errorf("%s: got %+v", c.about, got)
		}
	}
}

// Without expected statuses the kubelet's rules for redirects hold. With them, an expected redirect is
// the answer, and any other redirect on the same host is followed.
func TestExpectRedirects(t *testing.T) {
	address := answering(t)
	body := config.Expect{BodyMatches: regexp.MustCompile("end")}
	for _, c := range []struct {
		about    string
		expect   config.Expect
		query    string
		reason   action.Reason
		warning  bool
		location string // of the answer
	}{
		{"followed", body, "code=302&to=/?body=end", "", false, ""},
		{"followed, to another body", body, "code=302&to=/", action.HTTPBody, false, "/"},
		{"to another host", body, "code=302&body=end&to=http://192.0.2.1/", "", true, ""},
		{"to another host, with another body", body, "code=302&body=no&to=http://192.0.2.1/", action.HTTPBody, false, ""},
		{"expected", config.Expect{StatusCodes: codes(302, 302)}, "code=302&to=/?code=500", "", false, ""},
		{"expected in a range", config.Expect{StatusCodes: codes(200, 399)}, "code=302&to=/?code=500", "", false, ""},
		{"expected, to another host", config.Expect{StatusCodes: codes(302, 302)}, "code=302&to=http://192.0.2.1/", "", false, ""},
		{"expected, but another one", config.Expect{StatusCodes: codes(307, 307)}, "code=302&to=/", action.HTTPStatus, false, "/"},
		{"expected after another one", config.Expect{StatusCodes: codes(307, 307)}, "code=302&to=/?code=307%26to=/", "", false, ""},
		{"expected is the end", config.Expect{StatusCodes: codes(200, 200)}, "code=302&to=/", "", false, ""},
		{"not expected, to another host", config.Expect{StatusCodes: codes(200, 200)}, "code=302&to=http://192.0.2.1/", action.HTTPStatus, false, ""},
		{"too many", config.Expect{StatusCodes: codes(200, 200)}, "code=302&to=?code=302%26to=%3Fcode%3D302%2526to%3D/", "", false, ""},
		{"its location", config.Expect{StatusCodes: codes(302, 302), Headers: []config.ExpectHeader{{Name: "Location", Matches: regexp.MustCompile("^/login$")}}}, "code=302&to=/login", "", false, ""},
		{"another location", config.Expect{StatusCodes: codes(302, 302), Headers: []config.ExpectHeader{{Name: "Location", Matches: regexp.MustCompile("^/login$")}}}, "code=302&to=/", action.HTTPHeader, false, ""},
	} {
		got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/?" + c.query, Expect: &c.expect}))
		if c.location != "" {
			c.location = "http://" + address + c.location
		}
		if got.Success != (c.reason == "") || got.Reason != c.reason || got.Warning != c.warning || got.Address != c.location {
			t.Errorf("%s: got %+v", c.about, got)
		}
	}
}

// Only the first 10 KiB of a body are searched, however long the body is, and whether it ends or not.
func TestExpectBeginning(t *testing.T) {
	before := strings.Repeat("a", action.MaxOutput-1)
	address := actiontest.Web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, before+"XY")
		w.(http.Flusher).Flush()
		actiontest.Hang(r)
	}))
	for text, want := range map[string]bool{"X": true, "Y": false, "X$": true} {
		e := &config.Expect{BodyMatches: regexp.MustCompile(text)}
		got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/", Expect: e}))
		if got.Success != want || !want && got.Output != `the body up to 10 KiB does not match bodyMatches "Y"` {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

// A body that does not come in time is no answer: the attempt says nothing, whatever is expected.
func TestExpectNoBody(t *testing.T) {
	address := actiontest.Web(t, actiontest.Site())
	e := &config.Expect{BodyDoesNotMatch: regexp.MustCompile("x")}
	got, err := actiontest.Tried(t, httpProbe(address, 100*time.Millisecond, config.HTTPGet{Path: "/slowbody", Expect: e}))
	if err == nil || got.Reason != action.Timeout {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// A failure keeps the beginning of the body, and no output has a password of a URL.
func TestExpectHidesPasswords(t *testing.T) {
	address := answering(t)
	const body = "see http://user:password@host/"
	for name, c := range map[string]struct {
		expect config.Expect
		query  string
	}{
		"failure":  {config.Expect{BodyMatches: regexp.MustCompile("ok")}, ""},
		"redirect": {config.Expect{StatusCodes: codes(302, 302)}, "&code=302&to=/x"},
	} {
		got := actiontest.Attempt(t, httpProbe(address, 10*time.Second, config.HTTPGet{Path: "/?body=" + strings.ReplaceAll(body, " ", "+") + c.query, Expect: &c.expect}))
		if shown := got.Output + got.Body; strings.Contains(shown, "password@") || !strings.Contains(shown, "see http://user:***@host/") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	long := actiontest.Web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("a", 5000)) }))
	got := actiontest.Attempt(t, httpProbe(long, 10*time.Second, config.HTTPGet{Path: "/", Expect: &config.Expect{BodyMatches: regexp.MustCompile("b")}}))
	if len(got.Body) != maxBody {
		t.Errorf("%d bytes of the body", len(got.Body))
	}
}

// The largest regular expression takes a bounded time for the longest body.
func BenchmarkExpect(b *testing.B) {
	body := strings.Repeat("a", action.MaxOutput)
	r := &http.Response{StatusCode: http.StatusOK}
	for _, text := range []string{`"status":\s*"UP"`, "(a?){450}$b", "(x*a*){300}b", "(.*a){240}b"} {
		e := &config.Expect{BodyMatches: regexp.MustCompile(text)}
		b.Run(fmt.Sprint(text), func(b *testing.B) {
			for b.Loop() {
				_ = judgeBy(e, r, body)
			}
		})
	}
}

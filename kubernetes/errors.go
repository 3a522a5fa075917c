// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Trouble is a kind of failure. Each kind is one bit, so that a Trouble can hold several.
type Trouble uint16

// The kinds of failures.
const (
	TroubleSetup        Trouble = 1 << iota // the environment or the service account's files
	TroubleConnection                       // no answer
	TroubleCertificate                      // of the API server
	TroubleUnauthorized                     // 401
	TroubleForbidden                        // 403
	TroubleMissing                          // no such pod, or no such event
	TroubleExpired                          // 410: the version from which to watch is no longer there
	TroubleAnswer                           // any other unexpected answer
	TroubleCut                              // a watch that was cut off
	TroubleConflict                         // 409
	TroubleInvalid                          // 422, of a validation or of a policy
)

// Error says why a request failed. Its text never contains the token.
type Error struct {
	Trouble Trouble
	// After is how long the server asks the client to wait.
	After time.Duration
	// Refused says that the server has answered 4xx: what was asked for is not done. Otherwise
	// it may have been done.
	Refused bool

	err error
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// Errorf returns an error of that kind.
func Errorf(trouble Trouble, format string, args ...any) *Error {
	return &Error{Trouble: trouble, err: fmt.Errorf(format, args...)}
}

// refused is how the API server refuses a request, in an answer or in an event of a watch.
type refused struct {
	Kind    string `json:"kind"`
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// refusal returns an error that says what an answer other than success means and what to do
// about it. The error includes the server's message, cut and without the token.
func refusal(self Self, r request, resp *http.Response) *Error {
	e := refusalOf(self, r, resp)
	e.Refused = resp.StatusCode >= 400 && resp.StatusCode < 500
	return e
}

func refusalOf(self Self, r request, resp *http.Response) *Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10)) // part of a message will do
	status := refused{Message: resp.Status}
	if json.Unmarshal(body, &status) != nil || status.Message == "" {
		status = refused{Message: resp.Status}
	}
	said := self.quote(status.Message)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return Errorf(TroubleUnauthorized, "%s: the API server does not accept the service account's token (401): %s", r.of(self), said)
	case resp.StatusCode == http.StatusForbidden:
		return Errorf(TroubleForbidden, "%s: the Role of its service account in that namespace lacks the rule %s: %s", r.of(self), r.rule(self), said)
	case resp.StatusCode == http.StatusGone:
		return Errorf(TroubleExpired, "%s: %s", r.of(self), said)
	case resp.StatusCode == http.StatusConflict:
		return Errorf(TroubleConflict, "%s: the API server answers 409: %s", r.of(self), said)
	case resp.StatusCode == http.StatusUnprocessableEntity:
		return Errorf(TroubleInvalid, "%s: the API server answers 422: %s", r.of(self), said)
	case resp.StatusCode == http.StatusNotFound && status.Kind == "Status" && status.Reason == "NotFound":
		if r.resource == resourceEvents {
			return Errorf(TroubleMissing, "%s: %s", r.of(self), said)
		}
		return Errorf(TroubleMissing, "%s: there is no such pod; set POD_NAME and POD_NAMESPACE through the downward API", r.of(self))
	}
	e := Errorf(TroubleAnswer, "%s: the API server answers %d: %s", r.of(self), resp.StatusCode, said)
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		e.After = min(time.Duration(n)*time.Second, time.Minute)
	}
	return e
}

// of says in an error what was asked of a pod.
func (r request) of(self Self) string {
	if r.resource == resourcePods {
		return r.verb + " " + self.String()
	}
	return r.verb + " " + r.resource + " of " + self.String()
}

// rule returns the rule that a Role needs for the request.
func (r request) rule(self Self) string {
	names := ""
	if r.named {
		names = "resourceNames: [" + self.Name + "], "
	}
	return fmt.Sprintf(`{apiGroups: [""], resources: [%s], %sverbs: [%s]}`, r.resource, names, r.verb)
}

// quote cuts a text of the server for a log, and takes the token out of it.
func (s Self) quote(text string) string {
	text = strings.ReplaceAll(text, s.token, "[token]")
	return strconv.Quote(text[:min(len(text), 256)])
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package httpget

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// expects reports whether the configuration names a status.
func (g *httpGet) expects(status int) bool {
	e := g.probe.HTTPGet.Expect
	return e != nil && names(e.StatusCodes, status)
}

func names(codes []config.StatusRange, status int) bool {
	return slices.ContainsFunc(codes, func(r config.StatusRange) bool { return r.From <= status && status <= r.To })
}

// judge returns the outcome of a response.
func (g *httpGet) judge(r *http.Response, body string) action.Outcome {
	if e := g.probe.HTTPGet.Expect; e != nil {
		return judgeBy(e, r, body)
	}
	return judge(r.StatusCode, body)
}

// judgeBy returns the outcome of a response of which something is expected. Without expected
// statuses, those of the kubelet are successes. The outcome of a failure says everything that does
// not hold; its reason is that of the first.
func judgeBy(e *config.Expect, r *http.Response, body string) action.Outcome {
	var found mismatches
	made := judge(r.StatusCode, body)
	if len(e.StatusCodes) > 0 {
		// A body often repeats the Location of its redirect, which may have a password.
		made = action.Outcome{Success: true, Output: action.Redact(body)}
		if !names(e.StatusCodes, r.StatusCode) {
			made.Success = false
			found.add(action.HTTPStatus, "HTTP probe failed with statuscode: %d, expected %s", r.StatusCode, join(e.StatusCodes))
		}
	} else if !made.Success {
		found.add(made.Reason, "%s", made.Output)
	}
	if p := e.BodyMatches; p != nil && !p.MatchString(body) {
		found.add(action.HTTPBody, "%s does not match bodyMatches %q", partOf(body), p)
	}
	if p := e.BodyDoesNotMatch; p != nil && p.MatchString(body) {
		found.add(action.HTTPBody, "%s matches bodyDoesNotMatch %q", partOf(body), p)
	}
	for _, h := range e.Headers {
		// The values may be secrets, such as cookies.
		switch values := r.Header.Values(h.Name); {
		case len(values) == 0:
			found.add(action.HTTPHeader, "the answer has no header %s", h.Name)
		case !anyMatches(h.Matches, values):
			found.add(action.HTTPHeader, "the header %s does not match %q", h.Name, h.Matches)
		}
	}
	if found.wrong == nil {
		return made
	}
	return action.Outcome{
		Reason: found.reason,
		Output: action.Clip(strings.Join(found.wrong, "; ")),
		Body:   action.Redact(body[:min(len(body), maxBody)]),
	}
}

// anyMatches reports whether a value of a header matches. As of a body, only the first 10 KiB of all
// values are searched: no server can make an expression take longer.
func anyMatches(p *regexp.Regexp, values []string) bool {
	left := action.MaxOutput
	for _, v := range values {
		v = v[:min(len(v), left)]
		if left -= len(v); p.MatchString(v) {
			return true
		}
	}
	return false
}

// mismatches collects what does not hold.
type mismatches struct {
	reason action.Reason // of the first
	wrong  []string
}

func (m *mismatches) add(reason action.Reason, format string, args ...any) {
	if m.wrong == nil {
		m.reason = reason
	}
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// partOf names what was searched: more of a body than its first 10 KiB is not read.
func partOf(body string) string {
	if len(body) < action.MaxOutput {
		return "the body"
	}
	return "the body up to 10 KiB"
}

func join(codes []config.StatusRange) string {
	texts := make([]string, len(codes))
	for i, r := range codes {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

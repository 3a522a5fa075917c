// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
)

// maxListed is how many failing targets, and how many warnings, an answer lists.
const maxListed = 100

// report is the answer of a health endpoint, as JSON and as text.
type report struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	// Reason is why the check fails, whatever the state of the targets.
	Reason string `json:"reason,omitempty"`
	// Targets are the targets that fail and, in a verbose answer, those that pass.
	Targets []targetReport `json:"targets"`
	// More is how many failing targets are not listed.
	More int `json:"more,omitempty"`
	// Warnings are lines that do not decide the check.
	Warnings []warning `json:"warnings,omitempty"`

	notFound     bool
	moreWarnings int
}

// targetReport is the answer of a check for one target.
type targetReport struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	finding
	// Since is when OK changed last, in a verbose answer.
	Since time.Time `json:"since,omitzero"`
	// Restart is what the agent does about the verdict, in a verbose answer about liveness.
	Restart string `json:"restart,omitempty"`
}

// warning is a line about a target or a probe, or about the agent if about is empty.
type warning struct{ about, what string }

// String returns the line without its mark.
func (w warning) String() string { return w.about + " " + w.what }

// MarshalText returns the same for JSON.
func (w warning) MarshalText() ([]byte, error) {
	return []byte(strings.TrimPrefix(w.String(), " ")), nil
}

// add adds the answer of the check for a target.
func (rep *report) add(c *check, t *prober.TargetStatus, verbose bool) {
	said := targetReport{Name: t.Name, OK: c.holds(t)}
	if verbose {
		said.Since = c.changed(t).UTC().Truncate(time.Second)
	}
	switch {
	case !said.OK:
		said.finding = c.why(t)
		rep.fail(said, verbose)
	case verbose:
		if said.finding = beside(t, c.kind); !t.Running {
			said.finding = finding{Reason: notRunning} // nobody kills what does not run
		}
		rep.Targets = append(rep.Targets, said)
	}
}

// fail adds a target that fails. If all, the number of targets has no limit.
func (rep *report) fail(what targetReport, all bool) {
	rep.OK = false
	if !all && len(rep.Targets) == maxListed {
		rep.More++
		return
	}
	rep.Targets = append(rep.Targets, what)
}

// warn adds a warning, up to a number that no honest request reaches.
func (rep *report) warn(w warning) {
	if len(rep.Warnings) == maxListed {
		rep.moreWarnings++
		return
	}
	rep.Warnings = append(rep.Warnings, w)
}

func (rep *report) status() int {
	switch {
	case rep.notFound:
		return http.StatusNotFound
	case rep.OK:
		return http.StatusOK
	default:
		return http.StatusServiceUnavailable
	}
}

// write answers a request in the format that it accepts.
func (rep *report) write(w http.ResponseWriter, r *http.Request) {
	if rep.moreWarnings > 0 {
		rep.Warnings = append(rep.Warnings, warning{"", fmt.Sprintf("… and %d more", rep.moreWarnings)})
	}
	if acceptsJSON(r) {
		if rep.Targets == nil {
			rep.Targets = []targetReport{}
		}
		writeJSON(w, rep.status(), rep)
		return
	}
	writeText(w, rep.status(), rep.text(isVerbose(r)))
}

// text renders the report in the manner of a Kubernetes API server.
func (rep *report) text(verbose bool) string {
	var b strings.Builder
	for _, w := range rep.Warnings {
		b.WriteString("[?]" + w.String() + "\n")
	}
	if rep.Reason != "" {
		b.WriteString("[-]" + rep.Reason + "\n")
	}
	for i := range rep.Targets {
		rep.Targets[i].appendText(&b)
	}
	if rep.More > 0 {
		fmt.Fprintf(&b, "… and %d more\n", rep.More)
	}
	switch {
	case !rep.OK:
		b.WriteString(rep.Check + " check failed\n")
	case verbose:
		b.WriteString(rep.Check + " check passed\n")
	default:
		b.WriteString("ok\n")
	}
	return b.String()
}

func (t *targetReport) appendText(b *strings.Builder) {
	if t.OK {
		b.WriteString("[+]" + t.Name + " ok")
	} else {
		b.WriteString("[-]" + t.Name + " failed: " + t.String())
	}
	if !t.Since.IsZero() {
		b.WriteString(", since " + t.Since.Format(time.RFC3339))
	}
	if more := t.String(); t.OK && more != "" {
		b.WriteString(", " + more)
	}
	if t.Restart != "" {
		b.WriteString(", restart " + t.Restart)
	}
	b.WriteByte('\n')
}

// acceptsJSON reports whether the request names JSON among what it accepts. A
// client that takes anything gets text, and so does a load balancer.
func acceptsJSON(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			mediaType, params, err := mime.ParseMediaType(part)
			if err != nil || mediaType != "application/json" {
				continue
			}
			if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}

func writeText(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(body))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeText(w, http.StatusInternalServerError, fmt.Sprintf("encode the answer: %v\n", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// finding says why a target does not pass a check: a probe and the bounded reason of
// its last failure, never its output.
type finding struct {
	Kind string `json:"kind,omitempty"`
	// Probe is the name of a member of a list.
	Probe     string `json:"probe,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Failures  *int   `json:"failures,omitempty"`
	Threshold int    `json:"threshold,omitempty"`
	// Combined is what the list of the kind says.
	Combined *Combined `json:"combined,omitempty"`
}

// Combined is what the members of a list of probes say together.
type Combined struct {
	// Kind is startup, readiness or liveness.
	Kind string `json:"kind"`
	// Members is how many probes the list has. Require is how many of them must succeed,
	// Succeeding and Failing how many have the results Success and Failure.
	Members    int `json:"members"`
	Require    int `json:"require"`
	Succeeding int `json:"succeeding"`
	Failing    int `json:"failing"`
	// Result is Success, Failure or UNKNOWN.
	Result string `json:"result"`

	text string
}

// newCombined returns what a list says; nil if there is no list.
func newCombined(c *prober.CombinedStatus) *Combined {
	if c == nil {
		return nil
	}
	return &Combined{
		Kind:       c.Kind.String(),
		Members:    c.Members,
		Require:    c.Require,
		Succeeding: c.Succeeding,
		Failing:    c.Failing,
		Result:     c.Result.String(),
		text:       c.String(),
	}
}

// String returns the finding in the form of a health endpoint's text.
func (f finding) String() string {
	s := f.Reason
	if f.Kind != "" {
		title := f.Kind
		if f.Probe != "" {
			title += "/" + f.Probe
		}
		s = title + ": " + s
	}
	if f.Failures != nil {
		s += fmt.Sprintf(" (%d/%d)", *f.Failures, f.Threshold)
	}
	if f.Combined == nil {
		return s
	}
	if s != "" {
		s += ", "
	}
	return s + f.Combined.text
}

// The texts for targets without a failed attempt.
const (
	notRunning     = "not running"
	notStarted     = "not started"
	noResult       = "no result yet"
	belowSuccesses = "below success threshold"
)

func whyNotStarted(t *prober.TargetStatus) finding {
	if !t.Running {
		return finding{Reason: notRunning}
	}
	return whyProbe(t, gate.Startup)
}

func whyNotReady(t *prober.TargetStatus) finding {
	if !t.Started {
		return whyNotStarted(t)
	}
	return whyProbe(t, gate.Readiness)
}

// whyNotLive names the probe for which a kubelet would kill. Startup comes first: a
// liveness probe says nothing before the startup probe has succeeded.
func whyNotLive(t *prober.TargetStatus) finding {
	if t.Failed(gate.Startup) {
		return whyProbe(t, gate.Startup)
	}
	return whyProbe(t, gate.Liveness)
}

// whyProbe says why a kind does not say Success. Of a list it names one member.
func whyProbe(t *prober.TargetStatus, k gate.Kind) finding {
	p := t.Blamed(k)
	if p == nil {
		// The flags and the probes of a snapshot agree, so this happens only if a
		// new rule of either is not known here.
		return finding{Kind: k.String(), Reason: notStarted}
	}
	threshold := max(p.FailureThreshold, 1)
	failures := int(min(p.ConsecutiveFailures, uint64(threshold)))
	return finding{
		Kind: k.String(), Probe: p.Name, Reason: reasonOf(p), Failures: &failures, Threshold: threshold,
		Combined: newCombined(t.Combination(k)),
	}
}

// beside says what the list of a kind says while its target passes: which member has failed all
// the same. It is empty for a kind without a list.
func beside(t *prober.TargetStatus, k gate.Kind) finding {
	c := t.Combination(k)
	if c == nil {
		return finding{}
	}
	if c.Succeeding < c.Members {
		return whyProbe(t, k)
	}
	return finding{Combined: newCombined(c)}
}

func reasonOf(p *prober.ProbeStatus) string {
	switch {
	case p.Reason != "":
		return string(p.Reason)
	case !p.Gated && p.Last == gate.Success && 0 < p.Run && p.Run < p.SuccessThreshold:
		return belowSuccesses
	default:
		return noResult
	}
}

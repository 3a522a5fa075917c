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
	Kind      string `json:"kind,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Failures  *int   `json:"failures,omitempty"`
	Threshold int    `json:"threshold,omitempty"`
}

// String returns the finding in the form of a health endpoint's text.
func (f finding) String() string {
	s := f.Reason
	if f.Kind != "" {
		s = f.Kind + ": " + s
	}
	if f.Failures != nil {
		s += fmt.Sprintf(" (%d/%d)", *f.Failures, f.Threshold)
	}
	return s
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
	if p, ok := t.Probe(gate.Startup); ok && p.Result == gate.Failure {
		return whyProbe(t, gate.Startup)
	}
	return whyProbe(t, gate.Liveness)
}

func whyProbe(t *prober.TargetStatus, k gate.Kind) finding {
	p, ok := t.Probe(k)
	if !ok {
		// The flags and the probes of a snapshot agree, so this happens only if a
		// new rule of either is not known here.
		return finding{Kind: k.String(), Reason: notStarted}
	}
	threshold := max(p.FailureThreshold, 1)
	failures := int(min(p.ConsecutiveFailures, uint64(threshold)))
	return finding{Kind: k.String(), Reason: reasonOf(&p), Failures: &failures, Threshold: threshold}
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

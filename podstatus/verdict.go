// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// This file decides what a condition says. All of the file is pure.

// The reasons of a condition.
const (
	reasonSucceeding = "ProbesSucceeding"
	reasonFailing    = "ProbesFailing"
	reasonNotRunning = "TargetsNotRunning"
	reasonStarting   = "TargetsStarting"
	reasonStopping   = "AgentStopping"
)

// reasons are those of a False condition. If several apply, the first does.
var reasons = []string{reasonFailing, reasonNotRunning, reasonStarting}

// mostNamed bounds how many targets a message names.
const mostNamed = 10

// word is what the agent wants a condition to say.
type word struct {
	kind    string // the type of the condition
	holds   bool
	reason  string
	message string // never an output of a target
}

func (w word) status() string {
	if w.holds {
		return "True"
	}
	return "False"
}

// finding says why a target is not in a state; the zero value says that it is.
type finding struct{ reason, text string }

// wordFor returns what a condition says of its targets.
func wordFor(c *config.PodCondition, targets []*prober.TargetStatus) word {
	w := word{kind: c.Type, holds: true, reason: reasonSucceeding}
	var texts []string
	for _, t := range targets {
		f := find(c.State, t)
		if f == (finding{}) {
			continue
		}
		if w.holds || slices.Index(reasons, f.reason) < slices.Index(reasons, w.reason) {
			w.holds, w.reason = false, f.reason
		}
		texts = append(texts, t.Name+": "+f.text)
	}
	if more := len(texts) - mostNamed; more > 0 {
		texts = append(texts[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	w.message = strings.Join(texts, "; ")
	return w
}

// lastWord returns what a condition says once the agent stops.
func lastWord(c *config.PodCondition) word {
	return word{kind: c.Type, reason: reasonStopping, message: "the agent stops"}
}

// find returns why a target is not in a state.
func find(state string, t *prober.TargetStatus) finding {
	switch {
	case state == config.StateLive && t.Live, state == config.StateStarted && t.Started, state == config.StateReady && t.Ready:
		return finding{}
	case state == config.StateLive:
		for _, k := range []gate.Kind{gate.Startup, gate.Liveness} {
			if t.Failed(k) {
				return failing(t, k)
			}
		}
		return finding{reasonFailing, "not live"}
	case !t.Running:
		return finding{reasonNotRunning, "not running"}
	case !t.Started:
		if t.Failed(gate.Startup) {
			return failing(t, gate.Startup)
		}
		return finding{reasonStarting, "starting"}
	}
	if p := t.Blamed(gate.Readiness); p != nil && attempted(p) {
		return failing(t, gate.Readiness)
	}
	return finding{reasonStarting, "starting"}
}

// failing returns the finding about a kind whose result is not Success, as in
// "readiness: http_status (3/3)" or, for a list, "readiness/grpc: timeout (3/3), 1 of 2, all".
func failing(t *prober.TargetStatus, k gate.Kind) finding {
	f := failingProbe(t.Blamed(k))
	if c := t.Combination(k); c != nil {
		f.text += ", " + c.String()
	}
	return f
}

func failingProbe(p *prober.ProbeStatus) finding {
	text := p.Title() + ": "
	if p.ConsecutiveFailures == 0 { // not yet enough successes
		return finding{reasonFailing, fmt.Sprintf("%ssucceeding again (%d/%d)", text, min(p.Run, p.SuccessThreshold), p.SuccessThreshold)}
	}
	failures := min(p.ConsecutiveFailures, uint64(p.FailureThreshold)) //nolint:gosec // thresholds are positive
	return finding{reasonFailing, fmt.Sprintf("%s%s (%d/%d)", text, p.Reason, failures, p.FailureThreshold)}
}

// attempted reports whether an attempt of the probe has counted. A hold begins the run anew.
func attempted(p *prober.ProbeStatus) bool { return p.Run > 0 || p.Held }

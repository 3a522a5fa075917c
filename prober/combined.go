// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"

	"github.com/prober-exporter/prober_exporter/gate"
)

// This file names probes, and says which of several probes of a kind to name.

// Title returns the name of the probe within its target: "readiness", or "readiness/grpc" for a
// member of a list.
func (p *ProbeStatus) Title() string { return ProbeName(p.Kind, p.Name) }

// String says how many members succeed, of how many, and how many must: "1 of 2, any".
func (c CombinedStatus) String() string {
	return fmt.Sprintf("%d of %d, %s", c.Succeeding, c.Members, c.Requires())
}

// Requires returns how many members must succeed, as all, any, or "2 required".
func (c CombinedStatus) Requires() string {
	switch c.Require {
	case c.Members:
		return "all"
	case 1:
		return "any"
	default:
		return fmt.Sprintf("%d required", c.Require)
	}
}

// Combination returns what the list of a kind says; nil if the kind has no list.
func (t *TargetStatus) Combination(k gate.Kind) *CombinedStatus {
	for i := range t.Combined {
		if t.Combined[i].Kind == k {
			return &t.Combined[i]
		}
	}
	return nil
}

// Failed reports whether a kind says Failure: its only probe, or its list.
func (t *TargetStatus) Failed(k gate.Kind) bool {
	if c := t.Combination(k); c != nil {
		return c.Result == gate.Failure
	}
	p := t.Blamed(k)
	return p != nil && p.Result == gate.Failure
}

// Blamed returns the probe to name for what a kind says: its only probe or, of a list, the first
// member that explains best why the list does not say Success. A member that has failed comes
// before one that fails, and both come before one without a failure. nil if the target has no
// probe of the kind.
func (t *TargetStatus) Blamed(k gate.Kind) *ProbeStatus {
	var blamed *ProbeStatus
	for i := range t.Probes {
		p := &t.Probes[i]
		if p.Kind == k && (blamed == nil || p.blame() > blamed.blame()) {
			blamed = p
		}
	}
	return blamed
}

// blame says how much a probe explains of a list that does not say Success.
func (p *ProbeStatus) blame() int {
	switch {
	case p.Result == gate.Success:
		return 0
	case p.ConsecutiveFailures == 0:
		return 1
	case p.Result != gate.Failure:
		return 2
	default:
		return 3
	}
}

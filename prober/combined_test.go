// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"testing"

	"github.com/prober-exporter/prober_exporter/gate"
)

// A list says how many of its members succeed and how many must.
func TestCombinedText(t *testing.T) {
	for want, c := range map[string]CombinedStatus{
		"1 of 2, any":        {Succeeding: 1, Members: 2, Require: 1},
		"0 of 2, all":        {Members: 2, Require: 2},
		"2 of 3, 2 required": {Succeeding: 2, Members: 3, Require: 2},
		"1 of 1, all":        {Succeeding: 1, Members: 1, Require: 1},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Of a list, the first member that has failed is named; else one that fails; else one that has no
// result. A single probe is named as ever.
func TestBlamed(t *testing.T) {
	member := func(name string, result gate.Result, failures uint64) ProbeStatus {
		return ProbeStatus{Kind: gate.Readiness, Name: name, Result: result, ConsecutiveFailures: failures}
	}
	well, unsteady := member("well", gate.Success, 0), member("unsteady", gate.Success, 2)
	quiet, fails, failed := member("quiet", gate.Failure, 0), member("fails", gate.Unknown, 1), member("failed", gate.Failure, 3)
	for _, test := range []struct {
		of   []ProbeStatus
		want string
	}{
		{[]ProbeStatus{well, quiet, fails, failed, member("also", gate.Failure, 9)}, "readiness/failed"},
		{[]ProbeStatus{failed, fails, quiet, well}, "readiness/failed"},
		{[]ProbeStatus{quiet, unsteady, fails}, "readiness/fails"},
		{[]ProbeStatus{unsteady, well, quiet}, "readiness/quiet"},
		{[]ProbeStatus{well, unsteady}, "readiness/well"},
		{[]ProbeStatus{member("", gate.Success, 0)}, "readiness"},
	} {
		s := TargetStatus{Probes: append([]ProbeStatus{{Kind: gate.Startup, Result: gate.Failure, ConsecutiveFailures: 3}}, test.of...)}
		if got := s.Blamed(gate.Readiness).Title(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
		if s.Blamed(gate.Liveness) != nil {
			t.Error("a probe is named for a kind that has none")
		}
	}
}

// A kind has failed if its only probe has, or its list; a failed member alone is not enough.
func TestFailed(t *testing.T) {
	s := TargetStatus{
		Probes: []ProbeStatus{
			{Kind: gate.Startup, Result: gate.Failure},
			{Kind: gate.Readiness, Name: "a", Result: gate.Failure},
			{Kind: gate.Readiness, Name: "b", Result: gate.Success},
		},
		Combined: []CombinedStatus{{Kind: gate.Readiness, Members: 2, Require: 1, Succeeding: 1, Failing: 1, Result: gate.Success}},
	}
	if !s.Failed(gate.Startup) || s.Failed(gate.Readiness) || s.Failed(gate.Liveness) {
		t.Errorf("startup %t, readiness %t, liveness %t; want the startup probe alone", s.Failed(gate.Startup), s.Failed(gate.Readiness), s.Failed(gate.Liveness))
	}
	s.Combined[0].Result = gate.Failure
	if !s.Failed(gate.Readiness) {
		t.Error("a list that says Failure has not failed")
	}
}

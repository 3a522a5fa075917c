// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// This file reads a verdict from a target's state. It has no clock and no I/O.

// verdict is that an instance is to be restarted. The zero value is that nothing is.
type verdict struct {
	instance string
	kind     gate.Kind // the probe that says so
	probe    string    // its name, if the probe is a member of a list
}

// verdictOn returns the verdict on a target's instance: its startup or liveness probe says
// Failure, and as many attempts in a row as that probe's failureThreshold have failed on this
// instance. Of a list, so many members have failed in this way that the required number of
// successes cannot be met. The instance runs, and nobody has paused it or asked it to go away.
func verdictOn(s *prober.TargetStatus) verdict {
	inst := s.Instance
	if s.Live || s.Source == config.SourceStatic || inst.ID == "" || inst.Phase != gate.Running || inst.Deleting || s.Details.Paused {
		return verdict{}
	}
	for _, k := range [...]gate.Kind{gate.Startup, gate.Liveness} {
		if p := failedProbe(s, k); p != nil {
			return verdict{instance: inst.ID, kind: k, probe: p.Name}
		}
	}
	return verdict{}
}

// failedProbe returns the probe of a kind whose failures restart the instance; nil if there is
// none. Of a list, that is the member whose failure came last: the one that has brought it about.
func failedProbe(s *prober.TargetStatus, k gate.Kind) (last *prober.ProbeStatus) {
	probes, required, failed := 0, 1, 0
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.Kind != k {
			continue
		}
		probes++
		// No attempt may have found the Failure, if the source's view had a gap; or the attempts
		// of the probe that a reload has replaced, or of the instance before.
		if p.Result != gate.Failure || p.ConsecutiveFailures < leastFailures(p) {
			continue
		}
		failed++
		if last == nil || p.Changed.After(last.Changed) {
			last = p
		}
	}
	if c := s.Combination(k); c != nil {
		required = c.Require
	}
	if failed <= probes-required {
		return nil
	}
	return last
}

// leastFailures returns how many failures in a row make a verdict.
func leastFailures(p *prober.ProbeStatus) uint64 { return uint64(max(p.FailureThreshold, 1)) }

// describe returns the act that a verdict asks for, with what the probe says of its failures.
func describe(v verdict, s *prober.TargetStatus, handler string) Act {
	a := Act{Instance: v.instance, Kind: v.kind, Probe: v.probe, Handler: handler}
	p := s.Named(v.kind, v.probe)
	if p == nil || s.Instance.ID != v.instance {
		return a // a reload or another instance came in between
	}
	a.Reason, a.Failures, a.Threshold = p.Reason, p.ConsecutiveFailures, p.FailureThreshold
	a.Output = p.LastFailureOutput()
	return a
}

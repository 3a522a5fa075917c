// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// settling remembers of which targets the agent knows enough to speak. An agent that has just
// started knows nothing: its first snapshots say of a healthy target that it is not ready.
// Once settled, a target stays so for the life of the agent.
type settling struct {
	targets map[string]*unsettled // nil: settled
}

// unsettled is a target that the agent does not know yet.
type unsettled struct {
	known bool // of the first snapshot
	// waits has since when each probe could have made an attempt, and whether it was gated
	// then.
	waits [gate.NumKinds]wait
}

type wait struct {
	since time.Time
	gated bool
}

// see takes a snapshot of a target into account, and reports whether the target is settled:
// each of its probes has made an attempt that counts, or has had two periods for one. Time
// counts only while the source sees, and begins anew when a gate opens.
func (s *settling) see(t *prober.TargetStatus, sourceUp bool, now time.Time) (settled bool) {
	u, known := s.targets[t.Name]
	switch {
	case known && u == nil:
		return true
	case !known:
		u = new(unsettled)
		if s.targets == nil {
			s.targets = map[string]*unsettled{}
		}
		s.targets[t.Name] = u
	}
	settled = true
	for i := range t.Probes {
		p := &t.Probes[i]
		w := &u.waits[p.Kind]
		if !u.known || !sourceUp || w.gated && !p.Gated {
			w.since = now
		}
		w.gated = p.Gated
		if attempted(p) && !recovering(p) {
			continue
		}
		if !sourceUp || now.Sub(w.since) < allowance(p) {
			settled = false
		}
	}
	u.known = true
	if settled {
		s.targets[t.Name] = nil
	}
	return settled
}

// recovering reports whether a probe has had successes only, but not enough of them: a
// restart of the agent must not make a ready pod unready because of successThreshold.
func recovering(p *prober.ProbeStatus) bool {
	return p.Run > 0 && p.Last == gate.Success && p.Result != gate.Success && !p.Held
}

// allowance returns how long a probe has to settle. A gated probe may wait for its initial
// delay, too, and a recovering one needs its successes.
func allowance(p *prober.ProbeStatus) time.Duration {
	periods := 2
	if recovering(p) {
		periods = 1 + p.SuccessThreshold
	}
	d := time.Duration(periods) * p.Period
	if p.Gated {
		d += p.InitialDelay
	}
	return d
}

// forget drops what is known of targets that are not in the list any more.
func (s *settling) forget(statuses []prober.TargetStatus) {
	if len(s.targets) <= len(statuses) {
		return
	}
	there := make(map[string]bool, len(statuses))
	for i := range statuses {
		there[statuses[i].Name] = true
	}
	for name := range s.targets {
		if !there[name] {
			delete(s.targets, name)
		}
	}
}

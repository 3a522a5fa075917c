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
// Once settled, a target stays so for the life of the agent, unless a reload adds a probe.
type settling struct {
	targets map[string]*knowledge
}

// knowledge is what the agent knows of a target.
type knowledge struct {
	settled bool
	overdue bool // some probe has not settled for longer than its allowance
	// spoken says that the target has been settled once; life is the last one seen then.
	spoken bool
	life   life
	waits  map[probeName]wait
}

// life is one life of an instance, and whether the life goes on.
type life struct {
	id    string
	phase gate.Phase
}

// wait is what the agent knows of a probe.
type wait struct {
	there   bool
	settled bool
	// began is since when the probe could have made an attempt, and seen since when the
	// source has seen that.
	began, seen time.Time
	gated       bool
}

// see takes a snapshot of a target into account, and reports whether the target is settled:
// each of its probes has made an attempt that counts, or has had two periods and a timeout for
// one. A list is settled, too, once such attempts have decided what the list says. Time counts only while the source sees, and begins anew when a gate opens. A probe that a
// reload adds has to settle, too, unless the target has another life since, which begins not
// ready by the rules.
func (s *settling) see(t *prober.TargetStatus, sourceUp bool, now time.Time) (settled bool) {
	k := s.targets[t.Name]
	if k == nil {
		k = new(knowledge)
		if s.targets == nil {
			s.targets = map[string]*knowledge{}
		}
		s.targets[t.Name] = k
	}
	is := life{t.Instance.ID, t.Instance.Phase}
	another := k.spoken && is != k.life && is.phase != gate.PhaseUnknown
	before := k.waits
	k.waits, k.settled, k.overdue = make(map[probeName]wait, len(t.Probes)), true, false
	for i := range t.Probes {
		p := &t.Probes[i]
		w := before[probeNamed(p)].after(p, sourceUp, now)
		k.waits[probeNamed(p)] = w
		if w.settled || another || known(p) || decided(t, p.Kind) {
			continue
		}
		if most := allowance(p); !sourceUp || now.Sub(w.seen) < most {
			k.settled = false
			k.overdue = k.overdue || now.Sub(w.began) >= most
		}
	}
	if k.settled {
		if k.spoken = true; is.phase != gate.PhaseUnknown {
			k.life = is
		}
		for i := range t.Probes {
			name := probeNamed(&t.Probes[i])
			w := k.waits[name]
			w.settled = true
			k.waits[name] = w
		}
	}
	return k.settled
}

// known reports whether attempts have shown what a probe says.
func known(p *prober.ProbeStatus) bool { return attempted(p) && !recovering(p) }

// decided reports whether attempts have shown what the list of a kind says, whatever its other
// members find.
func decided(t *prober.TargetStatus, k gate.Kind) bool {
	c := t.Combination(k)
	if c == nil {
		return false
	}
	succeeding, failing := 0, 0
	for i := range t.Probes {
		switch p := &t.Probes[i]; {
		case p.Kind != k || !known(p):
		case p.Result == gate.Success:
			succeeding++
		case p.Result == gate.Failure:
			failing++
		}
	}
	return gate.Combine(c.Members, c.Require, succeeding, failing) != gate.Unknown
}

// after returns the wait after a look at the probe.
func (w wait) after(p *prober.ProbeStatus, sourceUp bool, now time.Time) wait {
	if !w.there || w.gated && !p.Gated {
		w.began, w.seen = now, now
	}
	if !sourceUp {
		w.seen = now
	}
	w.there, w.gated = true, p.Gated
	return w
}

// recovering reports whether a probe has had successes only, but not enough of them: a
// restart of the agent must not make a ready pod unready because of successThreshold.
func recovering(p *prober.ProbeStatus) bool {
	return p.Run > 0 && p.Last == gate.Success && p.Result != gate.Success && !p.Held
}

// allowance returns how long a probe has to settle. The last attempt may take its timeout. A
// gated probe may wait for its initial delay, too, and a recovering one needs its successes.
func allowance(p *prober.ProbeStatus) time.Duration {
	periods := 2
	if recovering(p) {
		periods = 1 + p.SuccessThreshold
	}
	d := time.Duration(periods)*p.Period + p.Timeout
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

// known returns those of the targets that are settled, and whether another is overdue. A target
// that a reload is about to add or has removed is nil.
func (s *settling) known(targets []*prober.TargetStatus) (known []*prober.TargetStatus, overdue bool) {
	for _, t := range targets {
		switch {
		case t == nil:
		case s.targets[t.Name].settled:
			known = append(known, t)
		default:
			overdue = overdue || s.targets[t.Name].overdue
		}
	}
	return known, overdue
}

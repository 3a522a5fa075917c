// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "slices"

// Origin says which probe of the state before a probe is. The zero value says that the probe is new.
type Origin struct {
	Found   bool
	Number  int  // in the list before
	Changed bool // the probe has another action
}

// Reconfigure returns the state under a new configuration, for the same instance; next is the
// state of that configuration before its first turn, and origin says where its probes come from.
// Published results stay, so that a change of the configuration alone never changes
// whether a target is started, ready or live. A run begins anew, and a hold ends, if the
// thresholds differ, or if the action does. A new startup probe of a
// started target, and a new readiness probe of a ready one, begin with Success.
//
// If the probes of a kind would now say something else together, because members or the required
// number have changed, those members that stand against what was said before take it over, and
// begin a new run: only attempts under the new configuration change what is said.
func (t Target) Reconfigure(next Target, origin func(k Kind, i int) Origin, inst Instance) Target {
	for _, k := range Kinds() {
		next.own(k)
		was, is := t.members(k), next.members(k)
		for i := range is {
			p := &is[i]
			if !p.Exists {
				continue // the kind has no probe
			}
			switch o := origin(k, i); {
			case o.Found && was[o.Number].Exists:
				*p = was[o.Number]
				before, after := t.numbers(k, o.Number), next.numbers(k, i)
				if o.Changed || before.SuccessThreshold != after.SuccessThreshold || before.FailureThreshold != after.FailureThreshold {
					p.Run, p.Held = 0, false
				}
			case k == Startup && t.Started(inst):
				p.adopt(inst.ID, Success)
				p.Held = true // as after a success of its own
			case k == Readiness && t.Ready(inst):
				p.adopt(inst.ID, Success)
			}
		}
		next.agree(k, t, inst)
	}
	return next
}

// agree makes the probes of a kind say together what they have said before.
func (t *Target) agree(k Kind, before Target, inst Instance) {
	met := func(p Probe) bool { return p.Exists && p.InstanceID != "" }
	i := slices.IndexFunc(before.members(k), met)
	if i < 0 {
		return // nothing has been said
	}
	if inst.ID == "" {
		inst.ID = before.members(k)[i].InstanceID // the view has a gap, after which these results count
	}
	said := k.matters(before.says(k, inst))
	if k.matters(t.says(k, inst)) == said {
		return
	}
	members := t.members(k)
	for i := range members {
		members[i].takeOver(k, said, inst)
	}
}

// matters returns a result for one that means the same: readiness has succeeded or not, and
// liveness has failed or not.
func (k Kind) matters(r Result) Result {
	if r == Unknown {
		return k.initial()
	}
	return r
}

// takeOver makes the probe publish r, which it has not found itself.
func (p *Probe) takeOver(k Kind, r Result, inst Instance) {
	if is, found := p.result(k, inst); !p.Exists || found && is == r {
		return
	}
	if handsOver := inst.From != "" && p.InstanceID == inst.From; !handsOver {
		p.InstanceID = inst.ID
	}
	p.Result, p.Run, p.Inherited = r, 0, p.Inherited && r == Success
	p.Held = k == Startup && r == Success
}

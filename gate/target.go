// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "time"

// Target is the state of a target's probes. A Target is a value: every method returns a new
// Target, and two can be compared with ==.
type Target struct {
	params [NumKinds]Params
	probes [NumKinds]Probe
}

// Probe is the state of one probe.
type Probe struct {
	// InstanceID is the instance to which Result applies; empty before the first one.
	InstanceID string
	// Last is the last outcome, and Run how many in a row were equal to it. Both
	// survive a new instance; only a hold zeroes Run (kubelet rule 4.22).
	Run  int
	Last Result
	// Result is what the probe publishes for InstanceID.
	Result Result
	// Exists is false for a kind that is not configured, or that has been removed.
	Exists bool
	// Held says that the probe makes no attempts until a new instance, or until the hold
	// has lasted Instance.MaxHold.
	Held bool
	// Inherited says that Result is the Success of the instance that handed over to
	// InstanceID, and that no attempt has confirmed it yet.
	Inherited bool

	// attemptAt is the time of the turn of the last attempt, from which a hold counts.
	// maxHold is Instance.MaxHold at that time.
	attemptAt time.Time
	maxHold   time.Duration
}

// New returns the state of a target before its first turn.
func New(params [NumKinds]Params) Target {
	t := Target{params: params}
	for k := range t.probes {
		t.probes[k].Exists = params[k].Configured
	}
	return t
}

// Probe returns the state of one probe.
func (t Target) Probe(k Kind) Probe { return t.probes[k] }

// Params returns one probe's numbers.
func (t Target) Params(k Kind) Params { return t.params[k] }

// Next returns what the probe does with a turn at time now, and the state after that. The
// order of the checks is the kubelet's (rules 4.3 to 4.11) and decides what is published while
// a target starts, dies or is deleted. started is an argument, and not t.Started, because a
// kubelet publishes that value at moments of its own.
func (t Target) Next(k Kind, inst Instance, started bool, now time.Time) (Target, Verdict) {
	p := t.probes[k] // a copy, which has no effect until put back into t
	verdict := p.next(k, t.params[k], inst, started, now)
	t.probes[k] = p
	return t, verdict
}

func (p *Probe) next(k Kind, params Params, inst Instance, started bool, now time.Time) Verdict {
	if !p.Exists {
		return Quit
	}
	if !inst.known() {
		if inst.Final {
			return Quit
		}
		return Wait
	}
	if inst.ID != p.InstanceID {
		p.meet(k, inst)
	}
	if p.Held && !p.holdOver(inst.MaxHold, now) {
		return Wait
	}
	p.Held = false
	if !inst.running() {
		p.Result, p.Inherited = Failure, false
		if inst.Phase == Terminated && inst.Final {
			return Quit
		}
		return Wait
	}
	if inst.Deleting && k != Readiness {
		p.Result = Success
		return Quit
	}
	if !p.Inherited && delayed(inst.startFor(k), params.InitialDelay, now) {
		return Wait
	}
	if confirms := k == Startup && p.Inherited; started == (k == Startup) && !confirms {
		return Wait
	}
	p.attemptAt, p.maxHold = now, inst.MaxHold
	return Attempt
}

// meet starts the probe on an instance, with the initial value of its kind or the result that
// it inherits (rule 4.6).
func (p *Probe) meet(k Kind, inst Instance) {
	p.Inherited = p.inherits(k, inst)
	if handedOver := inst.From != "" && inst.From == p.InstanceID; handedOver && p.Last == Failure {
		p.Run = 0
	}
	p.InstanceID, p.Held = inst.ID, false
	if !p.Inherited {
		p.Result = k.initial()
	}
}

// inherits reports whether the published Success stands for an instance to which another has
// handed over. Liveness begins anew: its initial value is Success, and a boot that nobody
// noticed must not be judged before the initial delay.
func (p *Probe) inherits(k Kind, inst Instance) bool {
	return k != Liveness && p.Result == Success && inst.From != "" && inst.From == p.InstanceID
}

// startFor returns when the initial delay of a kind begins.
func (i Instance) startFor(k Kind) time.Time {
	if k == Liveness && !i.StartedAt.IsZero() {
		return i.StartedAt.Add(i.LivenessLag)
	}
	return i.StartedAt
}

// holdOver reports whether a hold has lasted as long as it may.
func (p *Probe) holdOver(maxHold time.Duration, now time.Time) bool {
	if p.Result != Failure || maxHold == UntilNewInstance {
		return false
	}
	return now.Sub(p.attemptAt) >= maxHold
}

// HoldEnd returns when a hold after a failure ends by itself, given the source's present
// maxHold; the zero time if there is no hold, or only a new instance ends it.
func (p Probe) HoldEnd(maxHold time.Duration) time.Time {
	if !p.Held || p.Result != Failure || maxHold == UntilNewInstance {
		return time.Time{}
	}
	return p.attemptAt.Add(max(maxHold, 0))
}

// delayed reports whether the initial delay of an instance is still running. A
// kubelet compares whole seconds, truncated toward zero. For a delay of whole
// seconds, only a start in the future makes a difference: it blocks from one full
// second on (rule 4.10).
func delayed(startedAt time.Time, delay time.Duration, now time.Time) bool {
	if startedAt.IsZero() {
		return false
	}
	age := now.Sub(startedAt)
	if delay > 0 {
		return age < delay
	}
	return age <= delay-time.Second
}

// Fold adds the result of an attempt to the state: the run, and from its
// threshold on the published result and the hold (rules 4.14 to 4.17). An attempt
// that could not be made is not folded (rule 4.12): it neither breaks nor extends a run.
//
// If a failure holds nothing (Never), the attempts that a kubelet would not make
// may bring a success, but further failures do not count: the next instance then
// begins with the same run as after a hold.
func (t Target) Fold(k Kind, r Result) Target {
	p, params := &t.probes[k], t.params[k]
	if p.Inherited && r == Failure {
		p.Result = k.initial()
		if ready := &t.probes[Readiness]; k == Startup && ready.Exists && (ready.Inherited || ready.InstanceID != p.InstanceID) {
			// The instance boots: the readiness of the last instance says nothing about this one.
			ready.Result, ready.Inherited = Readiness.initial(), false
		}
	}
	p.Inherited = false
	if r == p.Last {
		p.Run++
	} else {
		p.Last, p.Run = r, 1
	}
	holds := k == Startup || k == Liveness && r == Failure
	never := r == Failure && p.maxHold < 0
	threshold := params.SuccessThreshold
	if r == Failure {
		threshold = params.FailureThreshold
	}
	failedAlready := holds && never && p.Result == Failure
	if p.Run < threshold && !failedAlready {
		return t
	}
	p.Result = r
	if holds {
		p.Held, p.Run = !never, 0
	}
	return t
}

// Remove ends a probe: it drops the result, and the kind counts as not configured. A
// kubelet's worker cleans up in the same way (rule 5.6).
func (t Target) Remove(k Kind) Target {
	t.probes[k] = Probe{}
	return t
}

// Result returns what a probe publishes for an instance: the initial value until the first
// turn for that instance. If no instance is known, the last result stays.
func (t Target) Result(k Kind, inst Instance) Result {
	p := t.probes[k]
	switch {
	case p.InstanceID == "":
		return k.initial()
	case inst.known() && p.InstanceID != inst.ID && !p.inherits(k, inst):
		return k.initial()
	}
	return p.Result
}

// result returns the probe's result for exactly this instance.
func (t Target) result(k Kind, inst Instance) (r Result, found bool) {
	p := t.probes[k]
	switch {
	case !p.Exists || p.InstanceID == "":
		return Success, false
	case p.InstanceID != inst.ID && !p.inherits(k, inst):
		return Success, false
	}
	return p.Result, true
}

// Started reports whether the instance has started (rule 2.5.1): it runs, and its
// startup probe says Success or does not exist.
func (t Target) Started(inst Instance) bool {
	if !inst.running() {
		return false
	}
	if r, found := t.result(Startup, inst); found {
		return r == Success
	}
	return !t.probes[Startup].Exists
}

// Ready reports whether the instance is ready (rule 2.5.4): it has started, and
// its readiness probe says Success or does not exist.
func (t Target) Ready(inst Instance) bool {
	if !t.Started(inst) {
		return false
	}
	if r, found := t.result(Readiness, inst); found {
		return r == Success
	}
	return !t.probes[Readiness].Exists
}

// Live reports whether a kubelet would leave the instance alone (rules 15.1 and
// 15.3). A kubelet does not kill an instance that does not run.
func (t Target) Live(inst Instance) bool {
	if !inst.running() {
		return true
	}
	for _, k := range [...]Kind{Startup, Liveness} {
		if r, found := t.result(k, inst); found && r == Failure {
			return false
		}
	}
	return true
}

// Restore makes a probe that was removed exist again, as fresh as New's.
func (t Target) Restore(k Kind) Target {
	t.probes[k] = Probe{Exists: t.params[k].Configured}
	return t
}

// Rename gives an instance another ID: the same life, seen by another source.
func (t Target) Rename(from, to string) Target {
	for k := range t.probes {
		if t.probes[k].InstanceID == from {
			t.probes[k].InstanceID = to
		}
	}
	return t
}

// Adopt makes the probe publish r, and not its initial value, for an instance that somebody
// else has judged. Unknown stands for no judgement: so begins a kubelet with a container
// that is older than the kubelet (rules 2.7.2 and 2.7.3).
func (t Target) Adopt(k Kind, inst Instance, r Result) Target {
	p := &t.probes[k]
	p.InstanceID, p.Result, p.Held, p.Inherited = inst.ID, r, false, false
	return t
}

// Reconfigure returns the state under new parameters, for the same instance.
// Published results stay, so that a change of the configuration alone never changes
// whether a target is started, ready or live. A run begins anew, and a hold ends, if the
// thresholds differ, or if changed says that the action does. A new startup probe of a
// started target, and a new readiness probe of a ready one, begin with Success.
func (t Target) Reconfigure(params [NumKinds]Params, changed [NumKinds]bool, inst Instance) Target {
	n := New(params)
	for _, k := range Kinds() {
		if !params[k].Configured {
			continue
		}
		switch before := t.probes[k]; {
		case before.Exists:
			was, is := t.params[k], params[k]
			if changed[k] || was.SuccessThreshold != is.SuccessThreshold || was.FailureThreshold != is.FailureThreshold {
				before.Run, before.Held = 0, false
			}
			n.probes[k] = before
		case k == Startup && t.Started(inst):
			n = n.Adopt(k, inst, Success)
			n.probes[k].Held = true // as after a success of its own
		case k == Readiness && t.Ready(inst):
			n = n.Adopt(k, inst, Success)
		}
	}
	return n
}

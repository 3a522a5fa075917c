// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "time"

// Target is the state of a target's probes. A Target is a value: every method returns a new
// Target and changes none. Two can be compared with == if no kind has a list of probes. A probe
// is found by its kind and its number in the list, which is 0 for the only probe of a kind.
type Target struct {
	params [NumKinds]Params
	probes [NumKinds]Probe
	lists  *[NumKinds]list // of the kinds that have several probes; nil if none has
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
	// has lasted Instance.MaxHold. A member of a list is held after its failure only while
	// the list as a whole fails.
	Held bool
	// Inherited says that Result is the Success of the instance that handed over to
	// InstanceID, and that no attempt has confirmed it yet.
	Inherited bool

	// attemptAt is the time of the turn of the last attempt, from which a hold counts.
	// maxHold is Instance.MaxHold at that time.
	attemptAt time.Time
	maxHold   time.Duration
}

// New returns the state of a target before its first turn, with at most one probe of each kind.
func New(params [NumKinds]Params) Target {
	t := Target{params: params}
	for k := range t.probes {
		t.probes[k].Exists = params[k].Configured
	}
	return t
}

// Probe returns the state of one probe.
func (t Target) Probe(k Kind, i int) Probe { return t.members(k)[i] }

// Params returns one probe's numbers.
func (t Target) Params(k Kind, i int) Params { return *t.numbers(k, i) }

// Next returns what the probe does with a turn at time now, and the state after that. The
// order of the checks is the kubelet's (rules 4.3 to 4.11) and decides what is published while
// a target starts, dies or is deleted. started is an argument, and not t.Started, because a
// kubelet publishes that value at moments of its own.
func (t Target) Next(k Kind, i int, inst Instance, started bool, now time.Time) (Target, Verdict) {
	t.own(k)
	members := t.members(k)
	if members[i].Exists && inst.known() {
		for j := range members {
			members[j].meet(k, inst)
		}
	}
	verdict := members[i].next(k, t.numbers(k, i).InitialDelay, inst, started, now)
	t.release(k)
	return t, verdict
}

// Peek returns the verdict of Next alone.
func (t Target) Peek(k Kind, i int, inst Instance, started bool, now time.Time) Verdict {
	p := t.Probe(k, i)
	if inst.known() {
		p.meet(k, inst)
	}
	return p.next(k, t.numbers(k, i).InitialDelay, inst, started, now)
}

func (p *Probe) next(k Kind, delay time.Duration, inst Instance, started bool, now time.Time) Verdict {
	if !p.Exists {
		return Quit
	}
	if !inst.known() {
		if inst.Final {
			return Quit
		}
		return Wait
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
	if !p.Inherited && delayed(inst.startFor(k), delay, now) {
		return Wait
	}
	if confirms := k == Startup && p.Inherited; started == (k == Startup) && !confirms {
		return Wait
	}
	p.attemptAt, p.maxHold = now, inst.MaxHold
	return Attempt
}

// meet starts the probe on an instance that is new to the probe, with the initial value of its
// kind or the result that the probe inherits (rule 4.6). All members of a list meet an instance at
// the first turn of any of them.
func (p *Probe) meet(k Kind, inst Instance) {
	if !p.Exists || p.InstanceID == inst.ID {
		return
	}
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
// If a failure holds nothing, the attempts that a kubelet would not make may bring a success,
// but further failures do not count: the next instance then begins with the same run as after a
// hold. A failure holds nothing if Instance.MaxHold is Never, or as long as a list does not fail.
//
// An attempt of a startup probe that says Success for the same instance counts for nothing: a
// reload has made the probe take over the start of its list during the attempt, and perhaps another
// has ended the hold.
func (t Target) Fold(k Kind, i int, r Result) Target {
	t.own(k)
	p, params := &t.members(k)[i], t.numbers(k, i)
	if k == Startup && p.Result == Success && p.InstanceID != "" && !p.Inherited {
		return t // started is latched
	}
	inst := Instance{ID: p.InstanceID}
	if p.Inherited && r == Failure {
		p.Result = k.initial()
		if k == Startup && t.says(Startup, inst) != Success {
			t.boots(inst)
		}
	}
	p.Inherited = false
	if r == p.Last {
		p.Run++
	} else {
		p.Last, p.Run = r, 1
	}
	failed := t.says(k, inst) == Failure
	holds := k == Startup || k == Liveness && r == Failure
	never := r == Failure && p.maxHold < 0
	threshold := params.SuccessThreshold
	if r == Failure {
		threshold = params.FailureThreshold
	}
	failedAlready := holds && r == Failure && p.Result == Failure && (never || !failed || p.Held)
	if p.Run < threshold && !failedAlready {
		return t
	}
	p.Result, p.Held = r, false
	if holds {
		p.Held, p.Run = r == Success, 0
	}
	switch fails := t.says(k, inst) == Failure; {
	case r == Success:
		t.release(k)
	case !fails, !holds, never:
	case failed:
		p.Held = true
	default:
		t.hold(k, inst) // all members that have brought this about, and not only the last
	}
	return t
}

// Remove ends a probe: it drops the result, and the probe counts as not configured. A
// kubelet's worker cleans up in the same way (rule 5.6).
func (t Target) Remove(k Kind, i int) Target { return t.with(k, i, Probe{}) }

// with returns the state with another state of one probe.
func (t Target) with(k Kind, i int, p Probe) Target {
	t.own(k)
	t.members(k)[i] = p
	return t
}

// Result returns what a probe publishes for an instance: the initial value until the first
// turn for that instance. If no instance is known, the last result stays.
func (t Target) Result(k Kind, i int, inst Instance) Result {
	p := &t.members(k)[i]
	switch {
	case p.InstanceID == "":
		return k.initial()
	case inst.known() && p.InstanceID != inst.ID && !p.inherits(k, inst):
		return k.initial()
	}
	return p.Result
}

// result returns the probe's result for exactly this instance.
func (p *Probe) result(k Kind, inst Instance) (r Result, found bool) {
	switch {
	case !p.Exists || p.InstanceID == "":
		return Success, false
	case p.InstanceID != inst.ID && !p.inherits(k, inst):
		return Success, false
	}
	return p.Result, true
}

// Started reports whether the instance has started (rule 2.5.1): it runs, and its
// startup probe says Success or does not exist. Of a list, as many as are required say Success.
func (t Target) Started(inst Instance) bool {
	return inst.running() && t.says(Startup, inst) == Success
}

// Ready reports whether the instance is ready (rule 2.5.4): it has started, and
// its readiness probe says Success or does not exist. Of a list, as many as are required say
// Success.
func (t Target) Ready(inst Instance) bool {
	return t.Started(inst) && t.says(Readiness, inst) == Success
}

// Live reports whether a kubelet would leave the instance alone (rules 15.1 and
// 15.3). A kubelet does not kill an instance that does not run. A list fails if so many say
// Failure that the required number cannot be met.
func (t Target) Live(inst Instance) bool {
	return !inst.running() || t.says(Startup, inst) != Failure && t.says(Liveness, inst) != Failure
}

// Restore makes a probe that was removed exist again, as fresh as New's.
func (t Target) Restore(k Kind, i int) Target {
	t = t.with(k, i, Probe{Exists: t.numbers(k, i).Configured})
	t.release(k)
	return t
}

// Rename gives an instance another ID: the same life, seen by another source.
func (t Target) Rename(from, to string) Target {
	for _, k := range Kinds() {
		t.own(k)
		members := t.members(k)
		for i := range members {
			if members[i].InstanceID == from {
				members[i].InstanceID = to
			}
		}
	}
	return t
}

// Adopt makes the probe publish r, and not its initial value, for an instance that somebody
// else has judged. Unknown stands for no judgement: so begins a kubelet with a container
// that is older than the kubelet (rules 2.7.2 and 2.7.3).
func (t Target) Adopt(k Kind, i int, inst Instance, r Result) Target {
	p := t.Probe(k, i)
	p.adopt(inst.ID, r)
	return t.with(k, i, p)
}

func (p *Probe) adopt(id string, r Result) {
	p.InstanceID, p.Result, p.Held, p.Inherited = id, r, false, false
}

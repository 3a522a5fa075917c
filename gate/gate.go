// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate decides what a probe does at its turn and what its result means:
// the kubelet's gating state machine as a pure function over a comparable value.
// It has no clock, no goroutine, no I/O and no log; a thin shell supplies the
// time, the instance and the outcome of the attempt.
//
// The kubelet's worker is one function with the probing in its middle. Cut
// there, it is Next (everything before the attempt) and Fold (everything after).
package gate

import "time"

// Kind is one of the three kinds of probe that a target may have.
type Kind uint8

// The kinds, in the order in which a kubelet creates their workers.
const (
	Startup Kind = iota
	Readiness
	Liveness
)

// NumKinds is the number of kinds; it sizes arrays that are indexed by Kind.
const NumKinds = 3

// Kinds lists the kinds in order.
func Kinds() [NumKinds]Kind { return [NumKinds]Kind{Startup, Readiness, Liveness} }

// String returns startup, readiness or liveness.
func (k Kind) String() string {
	switch k {
	case Startup:
		return "startup"
	case Readiness:
		return "readiness"
	case Liveness:
		return "liveness"
	}
	return "invalid"
}

// initial is the result that a probe publishes for an instance that it has not
// probed yet (the kubelet's initial values).
func (k Kind) initial() Result {
	switch k {
	case Startup:
		return Unknown
	case Readiness:
		return Failure
	case Liveness:
		return Success
	}
	return Unknown
}

// Result is what a probe says after its thresholds. The zero value is Success,
// and a fresh probe's last result is Success too: that is the kubelet's rule,
// not an accident.
type Result int8

// The results, with the numbers that the kubelet exports for them.
const (
	Unknown Result = iota - 1
	Success
	Failure
)

// String returns the kubelet's spelling, which is upper case for UNKNOWN only.
func (r Result) String() string {
	switch r {
	case Success:
		return "Success"
	case Failure:
		return "Failure"
	case Unknown:
		return "UNKNOWN"
	}
	return "invalid"
}

// Phase is the known state of an instance's process.
type Phase uint8

// The phases. The zero value is PhaseUnknown: the source has not seen the target yet.
const (
	PhaseUnknown Phase = iota
	Waiting
	Running
	Terminated
)

// String returns unknown, waiting, running or terminated.
func (p Phase) String() string {
	switch p {
	case PhaseUnknown:
		return "unknown"
	case Waiting:
		return "waiting"
	case Running:
		return "running"
	case Terminated:
		return "terminated"
	}
	return "invalid"
}

// Instance is one life of a target, as its source sees it at one moment: what a
// kubelet's worker reads of a container's status.
type Instance struct {
	// ID identifies one life; empty means that no instance is known.
	ID string
	// Phase says whether the instance runs. PhaseUnknown is a gap in the view: the results
	// stay, and the instance is not probed (kubelet rule 4.26).
	Phase Phase
	// Final says that no instance comes after this one: a terminated instance will not be
	// restarted or, with PhaseUnknown, the target as a whole has ended.
	Final bool
	// Deleting says that the target has been asked to go away for good.
	Deleting bool
	// StartedAt is when the instance began to run. The zero value means unknown but long
	// ago: the initial delays are over.
	StartedAt time.Time
	// LivenessLag is how much later than StartedAt the initial delay of a liveness probe
	// begins. The source sets LivenessLag if StartedAt may be too early: a liveness probe must
	// not judge a boot, whereas an early startup or readiness attempt does no harm.
	LivenessLag time.Duration
	// From is the ID of the instance that handed over to this one; empty if none did. The
	// Success of that instance's startup and readiness probes stands until the first attempt
	// of each, which waits for no delay. Failures do not stand.
	From string
	// Restarted says that an instance with From nevertheless has a new process.
	Restarted bool
	// MaxHold is how long a hold after a failure may last: UntilNewInstance, Never, or a
	// duration. A startup probe's hold after its success is not affected.
	MaxHold time.Duration
}

// Values of Instance.MaxHold beside positive durations.
const (
	// UntilNewInstance is the kubelet's rule, for a source that sees every restart.
	UntilNewInstance time.Duration = 0
	// Never is for a source that sees no restarts: nothing would end the hold.
	Never time.Duration = -1
)

// known reports whether the instance and its phase are known.
func (i Instance) known() bool { return i.Phase != PhaseUnknown && i.ID != "" }

// Restart reports whether the instance is a new life, and not the same life under another
// name.
func (i Instance) Restart() bool { return i.From == "" || i.Restarted }

// running reports whether the instance is known and runs.
func (i Instance) running() bool { return i.known() && i.Phase == Running }

// Verdict is what a probe does with its turn.
type Verdict uint8

// The verdicts.
const (
	// Wait: no attempt at this turn.
	Wait Verdict = iota
	// Attempt: run the action and Fold its result; if the action could not be run, fold
	// nothing.
	Attempt
	// Quit: the probe has ended; Remove the probe.
	Quit
)

// String returns wait, attempt or quit.
func (v Verdict) String() string {
	switch v {
	case Wait:
		return "wait"
	case Attempt:
		return "attempt"
	case Quit:
		return "quit"
	}
	return "invalid"
}

// Params are one probe's numbers. The zero value is a kind that the target does
// not have.
type Params struct {
	// Configured says that the target has a probe of this kind.
	Configured bool
	// InitialDelay is the least time from the instance's start to the first attempt.
	InitialDelay time.Duration
	// SuccessThreshold and FailureThreshold are how many equal outcomes in a row
	// change the result; 0 acts as 1.
	SuccessThreshold, FailureThreshold int
}

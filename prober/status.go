// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// This file has the types that report the state of all probes.

// Detail says how much a status contains.
type Detail uint8

// The details.
const (
	// Brief is without the histograms and the attempts, for the health endpoints.
	Brief Detail = iota
	// Series is Brief with the histograms, for a scrape.
	Series
	// Full is Series with the last attempts.
	Full
)

// Summary is the aggregated state of all targets.
type Summary struct {
	// Loaded says that a configuration is applied, Stopping that Stop was called, Terminating
	// that Terminate was called.
	Loaded, Stopping, Terminating bool
	// Targets is the number of targets, the others the number of those that are started,
	// ready or live.
	Targets, Started, Ready, Live int
}

// Status is the state of the agent's probes at one moment. The caller owns the Status and
// everything it points to.
type Status struct {
	Summary
	// Statuses has one entry for each target, in the order of the configuration.
	Statuses []TargetStatus
	// InFlight is the number of running attempts.
	InFlight int
	// Waiting is the number of probes that wait for the end of an attempt from before a
	// reload.
	Waiting int
	// Panics is the number of panics in actions that the agent has caught.
	Panics uint64
	// Lateness is how late turns began, in seconds.
	Lateness Histogram
	// SourceUp says of each instance source in use whether it works.
	SourceUp map[string]bool
}

// TargetStatus is the state of one target.
type TargetStatus struct {
	Name   string
	Labels []config.Label // sorted by name
	// Source is where instances come from. SourceReason says why, if the agent chose the
	// source. Instance is the current instance, Details what else the source knows of it.
	Source, SourceReason string
	Instance             gate.Instance
	Details              instance.Details
	// Running, Started, Ready and Live are derived (contract: health endpoints).
	Running, Started, Ready, Live bool
	// Changed is when Started, Ready and Live last changed or, before any change, when the
	// agent began to watch the target.
	Changed Changed
	// Restarts counts the instances after the first.
	Restarts uint64
	// StartupDuration is how long the instance took from its start until started;
	// negative while unknown.
	StartupDuration time.Duration
	// Probes has an entry for each probe, by kind and then in the order of the configuration.
	Probes []ProbeStatus
	// Combined has an entry for each kind with a list of probes, in the order of kinds.
	Combined []CombinedStatus
}

// CombinedStatus is what the members of a list of probes say together.
type CombinedStatus struct {
	Kind gate.Kind
	// Members is how many probes the list has, Require how many of them must succeed,
	// Succeeding and Failing how many say Success and Failure.
	Members, Require, Succeeding, Failing int
	// Result is Success if Require members say so, Failure if that cannot be met any more.
	Result gate.Result
}

// Changed is when each condition of a target last changed.
type Changed struct{ Started, Ready, Live time.Time }

// Named returns the status of the probe of a kind that has the name, which is empty for the only
// probe of its kind; nil if there is none.
func (t *TargetStatus) Named(k gate.Kind, name string) *ProbeStatus {
	for i := range t.Probes {
		if p := &t.Probes[i]; p.Kind == k && p.Name == name {
			return p
		}
	}
	return nil
}

// Probe returns the status of the only probe of a kind, or of the first member of its list, if the
// target has one.
func (t *TargetStatus) Probe(k gate.Kind) (ProbeStatus, bool) {
	for _, p := range t.Probes {
		if p.Kind == k {
			return p, true
		}
	}
	return ProbeStatus{}, false
}

// ProbeStatus is the state of one probe.
type ProbeStatus struct {
	Kind   gate.Kind
	Name   string // of a member of a list; empty for the only probe of its kind
	Action string // exec, httpGet, tcpSocket, grpc or heartbeat
	// Address is what the probe asks, without secrets: a URL, or host and port; or where the
	// beats of a heartbeat come from. Empty for exec, and below Full.
	Address string

	InitialDelay, Timeout, Period      time.Duration
	UnhealthyPeriod                    time.Duration // 0: Period
	SuccessThreshold, FailureThreshold int

	// Result is the published result for the instance. Last is the last outcome, and Run
	// how many outcomes in a row were equal to it, counted as the thresholds count.
	Result, Last gate.Result
	Run          int
	// Changed is when Result last changed, by probing or with the instance, or when the
	// agent began to watch the target.
	Changed time.Time
	// Held: no attempts until a new instance or until HeldUntil, the turn at which the hold
	// ends by itself, if that is not zero. Gated: no attempts yet, because of the initial
	// delay or the startup probe, or because there is no instance.
	Held, Gated bool
	HeldUntil   time.Time

	// ConsecutiveFailures counts the failed attempts since the last success; a new instance
	// begins at 0.
	ConsecutiveFailures uint64
	// Reason is why the last of the ConsecutiveFailures failed; empty if there are none.
	Reason action.Reason

	// Successful, Failed and Unknown count the attempts by outcome.
	Successful, Failed, Unknown uint64
	// Failures counts the failed and unknown attempts by reason; only reasons that occurred.
	Failures []ReasonCount
	// Transitions counts changes of Result by probing.
	Transitions uint64
	// LastRun is when the last attempt ended, NextTurn when the next turn is due; the zero
	// time if there is none.
	LastRun, NextTurn time.Time
	// LastHeartbeat is when the last beat came that a heartbeat probe knows of; the zero time
	// if there is none.
	LastHeartbeat time.Time

	// CertExpires is when the first of the certificates that the server showed last expires;
	// the zero time if it has shown none.
	CertExpires time.Time

	// Durations are those of the attempts by outcome, in seconds from the beginning of the
	// turn, tries included; empty below Series.
	Durations Durations
	// Runs has the runs of failures; nil until an attempt fails, and below Series.
	Runs *FailureRuns
	// LastHour is how near the probe came to its limits; nil if the last hour has no attempt of
	// the probe as it is configured now, and below Full.
	LastHour *LastHour

	// Attempts are the last 20 entries, and LastFailures the last 20 entries that did not
	// succeed; equal attempts in a row are one entry. Marks are the last 20 attempts one by
	// one. All are oldest first, and empty below Full.
	Attempts, LastFailures []Attempt
	Marks                  []Mark
	// FirstFailure is the first of the ConsecutiveFailures. LastSuccess is the last success
	// before FirstFailure or, while nothing fails, the last success. Both are nil if there
	// is none, and below Full.
	FirstFailure, LastSuccess *Attempt
}

// ProbeType returns a kind as the kubelet's metrics spell it.
func ProbeType(k gate.Kind) string {
	switch k {
	case gate.Startup:
		return "Startup"
	case gate.Readiness:
		return "Readiness"
	case gate.Liveness:
		return "Liveness"
	}
	return "invalid"
}

// ProbeName names a probe within its target: by its kind or, if it is a member of a list, by its
// kind and its own name.
func ProbeName(k gate.Kind, name string) string {
	if name == "" {
		return k.String()
	}
	return k.String() + "/" + name
}

// LastFailureOutput returns the output of the last attempt that failed; empty if there is none,
// and below Full.
func (p *ProbeStatus) LastFailureOutput() string {
	for _, a := range slices.Backward(p.LastFailures) {
		if a.Outcome == Failed {
			return a.Output
		}
	}
	return ""
}

// ReasonCount counts the attempts that failed for one reason.
type ReasonCount struct {
	Reason action.Reason
	Count  uint64
}

// Durations is a histogram for each outcome.
type Durations struct {
	Successful, Failed, Unknown Histogram
}

// FailureRuns counts the runs of failed attempts that ended in a success. A run that a new instance
// ended, or a reload that changed the probe, does not count.
type FailureRuns struct {
	Lengths Histogram
	// NearMisses counts the runs that were one failure short of the failureThreshold.
	NearMisses uint64
}

// LastHour is how near a probe came to its failureThreshold and to its timeout in the last 60 to 70
// minutes.
type LastHour struct {
	// WorstRun is the most failed attempts in a row, as the thresholds count and however the run
	// ended; 0 if none failed.
	WorstRun uint64
	// Succeeded says that an attempt succeeded. SlowestSuccess is the longest that a success took; 0
	// if each took less than SlowFrom.
	Succeeded      bool
	SlowestSuccess time.Duration
}

// Attempt is one past attempt, or several equal ones in a row.
type Attempt struct {
	// Start is when the first attempt began, Last when the last did. Count is the number of
	// attempts.
	Start, Last time.Time
	Count       uint64
	Duration    time.Duration // of the last
	// Outcome is successful, failed or unknown, as in the metrics.
	Outcome AttemptOutcome
	// Warning marks a success with a warning.
	Warning bool
	Reason  action.Reason
	// ExitCode is that of a failed command; 0 if there is none.
	ExitCode int
	// Output and Body are cut, and contain no secrets of the target's configuration. Body is
	// the body of the last response whose status is a failure.
	Output, Body string
	// Address is the address that answered, if a redirect led away from the probe's own.
	Address string
}

// Mark is a single attempt.
type Mark struct {
	Start    time.Time
	Duration time.Duration
	Outcome  AttemptOutcome
	Warning  bool
	Reason   action.Reason
}

// AttemptOutcome is how an attempt counts.
type AttemptOutcome uint8

// The outcomes of an attempt.
const (
	Successful AttemptOutcome = iota
	Failed
	UnknownOutcome
)

// String returns successful, failed or unknown.
func (o AttemptOutcome) String() string {
	switch o {
	case Successful:
		return "successful"
	case Failed:
		return "failed"
	case UnknownOutcome:
		return "unknown"
	}
	return "invalid"
}

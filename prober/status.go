// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// This file has the types in which the truth about all probes is told.

// Detail says how much a status tells.
type Detail uint8

// The details.
const (
	// Brief leaves out the histograms and the attempts: what the health endpoints need.
	Brief Detail = iota
	// Series is Brief with the histograms: what a scrape needs.
	Series
	// Full is Series with the last attempts.
	Full
)

// Summary is the state of all targets in constant time.
type Summary struct {
	// Loaded says that a configuration is applied, Stopping that Stop was called, and
	// Terminating that Terminate was.
	Loaded, Stopping, Terminating bool
	// Targets is how many there are, the others how many of them are so.
	Targets, Started, Ready, Live int
}

// Status is the truth about the agent's probes at one moment. It and all that it
// points to belong to the caller.
type Status struct {
	Summary
	// Statuses has one entry a target, in the order of the configuration.
	Statuses []TargetStatus
	// InFlight is how many attempts are running.
	InFlight int
	// Waiting is how many probes wait for an attempt from before a reload to end.
	Waiting int
	// Panics is how many panics in an action were caught.
	Panics uint64
	// Lateness is how late turns began after their time, in seconds.
	Lateness Histogram
	// SourceUp has an entry for each instance source in use: whether it works.
	SourceUp map[string]bool
}

// TargetStatus is the truth about one target.
type TargetStatus struct {
	Name   string
	Labels []config.Label // sorted by name
	// Source is where instances come from, and SourceReason why, if the file left that
	// open. Instance is the one there is, Details what else is known of it.
	Source, SourceReason string
	Instance             gate.Instance
	Details              instance.Details
	// Running, Started, Ready and Live are derived (contract: health endpoints).
	Running, Started, Ready, Live bool
	// Changed is when these three changed last or, where they have not, when the agent
	// began to watch the target.
	Changed Changed
	// Restarts counts the instances after the first.
	Restarts uint64
	// StartupDuration is how long the instance took from its start until started;
	// negative while that is not known.
	StartupDuration time.Duration
	// Probes has an entry for each kind that is configured, in the order of kinds.
	Probes []ProbeStatus
}

// Changed is when the conditions of a target changed last.
type Changed struct{ Started, Ready, Live time.Time }

// Probe returns the status of one kind, if the target has it.
func (t *TargetStatus) Probe(k gate.Kind) (ProbeStatus, bool) {
	for _, p := range t.Probes {
		if p.Kind == k {
			return p, true
		}
	}
	return ProbeStatus{}, false
}

// ProbeStatus is the truth about one probe.
type ProbeStatus struct {
	Kind   gate.Kind
	Action string // exec, httpGet, tcpSocket or grpc
	// Address is what is asked, without secrets: a URL, or host and port; empty for exec,
	// and below Full.
	Address string

	InitialDelay, Timeout, Period      time.Duration
	SuccessThreshold, FailureThreshold int

	// Result is what the probe publishes of the instance. Last and Run are its last
	// outcome and how many in a row were equal, counted as the thresholds count.
	Result, Last gate.Result
	Run          int
	// Changed is when Result changed last, by probing or with the instance, or when the
	// agent began to watch.
	Changed time.Time
	// Held: no attempts until a new instance or until HeldUntil, if that is not zero: the
	// turn at which a hold ends by itself. Gated: none yet, because of the initial
	// delay, of a startup probe, or because there is no instance.
	Held, Gated bool
	HeldUntil   time.Time

	// ConsecutiveFailures counts failed attempts since the last success; 0 at a new
	// instance.
	ConsecutiveFailures uint64
	// Reason is why the last of them failed; empty if there is none.
	Reason action.Reason

	// Successful, Failed and Unknown count the probes run, by outcome.
	Successful, Failed, Unknown uint64
	// Failures counts the failed and unknown ones by reason; only reasons that occurred.
	Failures []ReasonCount
	// Transitions counts changes of Result by probing.
	Transitions uint64
	// LastRun is when the last attempt ended, NextTurn when the next turn is due; zero
	// if there is none.
	LastRun, NextTurn time.Time

	// Durations of the attempts by outcome, in seconds, from the beginning of the turn,
	// tries included. Empty below Series.
	Durations Durations

	// What is remembered of attempts, oldest first; empty below Full. Attempts are the last
	// 20 entries, LastFailures the last 20 of what did not succeed; equal attempts in a row
	// are one entry. Marks are the last 20 attempts one by one.
	Attempts, LastFailures []Attempt
	Marks                  []Mark
	// FirstFailure is the first of the ConsecutiveFailures, LastSuccess the success before
	// it or, while nothing fails, the last attempt that succeeded. Nil: there is none, or
	// below Full.
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

// ReasonCount is how often attempts failed for one reason.
type ReasonCount struct {
	Reason action.Reason
	Count  uint64
}

// Durations is a histogram for each outcome.
type Durations struct {
	Successful, Failed, Unknown Histogram
}

// Attempt is what one attempt of the past said, or several in a row that said the same.
type Attempt struct {
	// Start is when the first of them began, Last when the last did; Count is how many
	// there were.
	Start, Last time.Time
	Count       uint64
	Duration    time.Duration // of the last
	// Outcome is successful, failed or unknown, as in the metrics.
	Outcome AttemptOutcome
	// Warning marks a successful one with a warning.
	Warning bool
	Reason  action.Reason
	// ExitCode is a failed command's; 0: there is none.
	ExitCode int
	// Output and Body are cut, and secrets of the target's configuration are taken out of
	// them. Body is what a server said beside a status that is a failure, the last time.
	Output, Body string
	// Address is what was asked, if a redirect has led away from the probe's own.
	Address string
}

// Mark is one attempt by itself.
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

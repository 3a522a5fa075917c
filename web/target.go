// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Targets is the answer to GET /api/v1/targets.
type Targets struct {
	// Targets are in the order of the configuration.
	Targets []Target `json:"targets"`
}

// Error is the answer to a request of the API that is refused.
type Error struct {
	Error string `json:"error"`
}

// Target is all that is known of a target, and the answer to GET
// /api/v1/targets/{target}. Times are RFC 3339 in UTC; what is not known is left out.
type Target struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	// Source is where instances come from, SourceReason why, if the file left it open.
	Source       string   `json:"source"`
	SourceReason string   `json:"source_reason,omitempty"`
	Instance     Instance `json:"instance"`
	// Running, Started, Ready and Live are what the health endpoints and the metrics say.
	Running bool `json:"running"`
	Started bool `json:"started"`
	Ready   bool `json:"ready"`
	Live    bool `json:"live"`
	// LastTransition is when started, ready and live changed last or, where they have not,
	// since when the agent has watched the target.
	LastTransition Transitions `json:"last_transition"`
	// Restarts counts the instances after the first.
	Restarts uint64 `json:"restarts"`
	// StartupDuration is how long the instance took from its start until started.
	StartupDuration *float64 `json:"startup_duration_seconds,omitempty"`
	// Probes are those that are configured: startup, readiness, liveness.
	Probes []Probe `json:"probes"`
}

// Transitions are when the conditions of a target changed last.
type Transitions struct {
	Started time.Time `json:"started,omitzero"`
	Ready   time.Time `json:"ready,omitzero"`
	Live    time.Time `json:"live,omitzero"`
}

// Instance is one life of a target.
type Instance struct {
	ID string `json:"id"`
	// Phase is unknown, waiting, running or terminated.
	Phase     string    `json:"phase"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Final says that no instance follows, Deleting that it has been asked to go.
	Final    bool `json:"final"`
	Deleting bool `json:"deleting"`
	// What else the source knows; left out where it does not. The exit code is that of
	// the target's last end.
	PID       int    `json:"pid,omitempty"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	OOMKilled bool   `json:"oom_killed,omitempty"`
	Paused    bool   `json:"paused,omitempty"`
	Message   string `json:"message,omitempty"`
}

// Probe is one kind of probe of a target: its configuration and its state.
type Probe struct {
	// Kind is startup, readiness or liveness, Action exec, httpGet, tcpSocket or grpc.
	Kind   string `json:"kind"`
	Action string `json:"action"`
	// Address is what is asked: a URL, or host and port. Secrets are taken out of it.
	Address string `json:"address,omitempty"`

	InitialDelay     float64 `json:"initial_delay_seconds"`
	Timeout          float64 `json:"timeout_seconds"`
	Period           float64 `json:"period_seconds"`
	SuccessThreshold int     `json:"success_threshold"`
	FailureThreshold int     `json:"failure_threshold"`

	// Result is what the probe says after thresholds: Success, Failure or UNKNOWN.
	Result string `json:"result"`
	// LastTransition is when that changed last, by probing or with the instance, or since
	// when the agent has watched.
	LastTransition time.Time `json:"last_transition,omitzero"`
	// Last is the last outcome, Run how many in a row were equal to it, as the
	// thresholds count.
	Last string `json:"last"`
	Run  int    `json:"run"`
	// ConsecutiveFailures counts the failed attempts since the last success of this
	// instance; Reason is why the last of them failed.
	ConsecutiveFailures uint64 `json:"consecutive_failures"`
	Reason              string `json:"reason,omitempty"`
	// Held: on hold until a new instance or, if there is a HeldUntil, until then. Gated:
	// waits for its initial delay, for the startup probe, or for an instance.
	Held      bool      `json:"held"`
	HeldUntil time.Time `json:"held_until,omitzero"`
	Gated     bool      `json:"gated"`

	// Counts are of all attempts since the target was configured.
	Counts      Counts    `json:"counts"`
	Transitions uint64    `json:"transitions"`
	LastRun     time.Time `json:"last_run,omitzero"`
	NextTurn    time.Time `json:"next_turn,omitzero"`

	// Attempts are the last attempts, LastFailures the last that did not succeed; both
	// oldest first, and equal ones in a row as one entry.
	Attempts     []Attempt `json:"attempts"`
	LastFailures []Attempt `json:"last_failures"`
	// FirstFailure is the first of the consecutive failures, LastSuccess the success before
	// it or, while nothing fails, the last one.
	FirstFailure *Attempt `json:"first_failure,omitempty"`
	LastSuccess  *Attempt `json:"last_success,omitempty"`
	// Recent are the last attempts one by one, oldest first.
	Recent []Mark `json:"recent"`
}

// Counts are how the attempts of a probe ended.
type Counts struct {
	Successful uint64 `json:"successful"`
	Failed     uint64 `json:"failed"`
	Unknown    uint64 `json:"unknown"`
	// Reasons counts the failed and unknown ones by reason.
	Reasons map[string]uint64 `json:"reasons"`
}

// Attempt is one attempt of the past, or Count of them in a row that said the same.
type Attempt struct {
	Mark
	// Last is when the last of them began, if there were several; Start is the first's, and
	// the duration the last's.
	Last  time.Time `json:"last,omitzero"`
	Count uint64    `json:"count"`
	// ExitCode is a failed command's: 128 and its number if a signal ended it.
	ExitCode int `json:"exit_code,omitempty"`
	// Output is what a kubelet would say, Body the beginning of what a server said beside a
	// status that is a failure. Address is what was asked, if a redirect led elsewhere.
	Output  string `json:"output,omitempty"`
	Body    string `json:"body,omitempty"`
	Address string `json:"address,omitempty"`
}

// Mark is an attempt without what it said.
type Mark struct {
	Start    time.Time `json:"start"`
	Duration float64   `json:"duration_seconds"`
	// Outcome is successful, failed or unknown.
	Outcome string `json:"outcome"`
	Warning bool   `json:"warning,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func newTarget(t *prober.TargetStatus) Target {
	out := Target{
		Name:         t.Name,
		Labels:       make(map[string]string, len(t.Labels)),
		Source:       t.Source,
		SourceReason: t.SourceReason,
		Instance:     newInstance(t.Instance, t.Details),
		Running:      t.Running,
		Started:      t.Started,
		Ready:        t.Ready,
		Live:         t.Live,
		LastTransition: Transitions{
			Started: t.Changed.Started.UTC(),
			Ready:   t.Changed.Ready.UTC(),
			Live:    t.Changed.Live.UTC(),
		},
		Restarts: t.Restarts,
		Probes:   make([]Probe, len(t.Probes)),
	}
	for _, l := range t.Labels {
		out.Labels[l.Name] = l.Value
	}
	if t.StartupDuration >= 0 {
		out.StartupDuration = new(t.StartupDuration.Seconds())
	}
	for i := range t.Probes {
		out.Probes[i] = newProbe(&t.Probes[i])
	}
	return out
}

func newInstance(i gate.Instance, d instance.Details) Instance {
	return Instance{
		ID:        i.ID,
		Phase:     i.Phase.String(),
		StartedAt: i.StartedAt.UTC(),
		Final:     i.Final,
		Deleting:  i.Deleting,
		PID:       d.PID,
		ExitCode:  d.ExitCode,
		OOMKilled: d.OOMKilled,
		Paused:    d.Paused,
		Message:   d.Message,
	}
}

func newProbe(p *prober.ProbeStatus) Probe {
	out := Probe{
		Kind:                p.Kind.String(),
		Action:              p.Action,
		Address:             p.Address,
		InitialDelay:        p.InitialDelay.Seconds(),
		Timeout:             p.Timeout.Seconds(),
		Period:              p.Period.Seconds(),
		SuccessThreshold:    p.SuccessThreshold,
		FailureThreshold:    p.FailureThreshold,
		Result:              p.Result.String(),
		LastTransition:      p.Changed.UTC(),
		Last:                p.Last.String(),
		Run:                 p.Run,
		ConsecutiveFailures: p.ConsecutiveFailures,
		Reason:              string(p.Reason),
		Held:                p.Held,
		HeldUntil:           p.HeldUntil.UTC(),
		Gated:               p.Gated,
		Counts: Counts{
			Successful: p.Successful,
			Failed:     p.Failed,
			Unknown:    p.Unknown,
			Reasons:    make(map[string]uint64, len(p.Failures)),
		},
		Transitions:  p.Transitions,
		LastRun:      p.LastRun.UTC(),
		NextTurn:     p.NextTurn.UTC(),
		Attempts:     newAttempts(p.Attempts),
		LastFailures: newAttempts(p.LastFailures),
		Recent:       make([]Mark, len(p.Marks)),
	}
	if p.FirstFailure != nil {
		out.FirstFailure = new(newAttempt(p.FirstFailure))
	}
	if p.LastSuccess != nil {
		out.LastSuccess = new(newAttempt(p.LastSuccess))
	}
	for i, m := range p.Marks {
		out.Recent[i] = Mark{m.Start.UTC(), m.Duration.Seconds(), m.Outcome.String(), m.Warning, string(m.Reason)}
	}
	for _, f := range p.Failures {
		out.Counts.Reasons[string(f.Reason)] = f.Count
	}
	return out
}

func newAttempts(attempts []prober.Attempt) []Attempt {
	out := make([]Attempt, len(attempts))
	for i := range attempts {
		out[i] = newAttempt(&attempts[i])
	}
	return out
}

func newAttempt(a *prober.Attempt) Attempt {
	out := Attempt{
		Mark:     Mark{a.Start.UTC(), a.Duration.Seconds(), a.Outcome.String(), a.Warning, string(a.Reason)},
		Count:    a.Count,
		ExitCode: a.ExitCode,
		Output:   a.Output,
		Body:     a.Body,
		Address:  a.Address,
	}
	if a.Count > 1 {
		out.Last = a.Last.UTC()
	}
	return out
}

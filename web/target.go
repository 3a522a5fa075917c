// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/restart"
)

// Targets is the answer to GET /api/v1/targets.
type Targets struct {
	// Targets are in the order of the configuration.
	Targets []Target `json:"targets"`
}

// Error is the answer to an API request that is refused.
type Error struct {
	Error string `json:"error"`
}

// Target is a target with all its details, and the answer to GET
// /api/v1/targets/{target}. Times are RFC 3339 in UTC. Unknown values are left out.
type Target struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	// Source is the source of instances, SourceReason why auto chose it.
	Source       string   `json:"source"`
	SourceReason string   `json:"source_reason,omitempty"`
	Instance     Instance `json:"instance"`
	// Running, Started, Ready and Live have the values of the health endpoints and the
	// metrics.
	Running bool `json:"running"`
	Started bool `json:"started"`
	Ready   bool `json:"ready"`
	Live    bool `json:"live"`
	// LastTransition is when started, ready and live last changed. Before the first
	// change it is when the agent began to watch the target.
	LastTransition Transitions `json:"last_transition"`
	// Restarts counts the instances after the first.
	Restarts uint64 `json:"restarts"`
	// StartupDuration is the time from the start of the instance until the target was
	// started.
	StartupDuration *float64 `json:"startup_duration_seconds,omitempty"`
	// Restart is nil for a target without a restart block.
	Restart *Restart `json:"restart,omitempty"`
	// Probes are the configured probes, in the order startup, readiness, liveness. The
	// members of a list are in its order.
	Probes []Probe `json:"probes"`
	// Combined has what each list of probes says, absent without lists.
	Combined []Combined `json:"combined,omitempty"`
}

// Transitions are the times at which the conditions of a target last changed.
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
	// Final says that no instance follows, Deleting that the instance is being deleted.
	Final    bool `json:"final"`
	Deleting bool `json:"deleting"`
	// Details of the source, left out if unknown. The exit code is that of the target's
	// last end.
	PID       int    `json:"pid,omitempty"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	OOMKilled bool   `json:"oom_killed,omitempty"`
	Paused    bool   `json:"paused,omitempty"`
	Message   string `json:"message,omitempty"`
}

// Probe is one probe of a target: its configuration and its state.
type Probe struct {
	// Kind is startup, readiness or liveness, Action exec, httpGet, tcpSocket, grpc or
	// heartbeat. Name is that of a member of a list, absent for the only probe of its kind.
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Action string `json:"action"`
	// Address is the URL, or host and port, that the probe asks, without secrets, or the
	// file or path of a heartbeat.
	Address string `json:"address,omitempty"`

	InitialDelay     float64 `json:"initial_delay_seconds"`
	Timeout          float64 `json:"timeout_seconds"`
	Period           float64 `json:"period_seconds"`
	UnhealthyPeriod  float64 `json:"unhealthy_period_seconds,omitzero"`
	SuccessThreshold int     `json:"success_threshold"`
	FailureThreshold int     `json:"failure_threshold"`

	// Result is the result after thresholds: Success, Failure or UNKNOWN.
	Result string `json:"result"`
	// LastTransition is when the result last changed, by an attempt or with the instance.
	// Before the first change it is when the agent began to watch the target.
	LastTransition time.Time `json:"last_transition,omitzero"`
	// Last is the last outcome, Run how many equal outcomes came in a row, as the
	// thresholds count.
	Last string `json:"last"`
	Run  int    `json:"run"`
	// ConsecutiveFailures counts the failed attempts since the last success of this
	// instance. Reason is why the last of these attempts failed.
	ConsecutiveFailures uint64 `json:"consecutive_failures"`
	Reason              string `json:"reason,omitempty"`
	// Held: the probe is on hold until a new instance, or until HeldUntil if that is set.
	// Gated: the probe waits for its initial delay, for the startup probe, or for an
	// instance.
	Held      bool      `json:"held"`
	HeldUntil time.Time `json:"held_until,omitzero"`
	Gated     bool      `json:"gated"`

	// Counts are of all attempts since the target was configured.
	Counts      Counts    `json:"counts"`
	Transitions uint64    `json:"transitions"`
	LastRun     time.Time `json:"last_run,omitzero"`
	NextTurn    time.Time `json:"next_turn,omitzero"`
	// CertExpires is when the first of the certificates that the server showed last expires.
	CertExpires time.Time `json:"tls_earliest_cert_expiry,omitzero"`
	// LastHeartbeat is when the last beat came that a heartbeat probe knows of.
	LastHeartbeat time.Time `json:"last_heartbeat,omitzero"`

	// LastHour is how near the probe came to its limits in the last hour, absent if there was no
	// attempt.
	LastHour *LastHour `json:"last_hour,omitempty"`

	// Attempts are the last attempts, LastFailures the last attempts that did not succeed.
	// Both are oldest first, and equal attempts in a row share an entry.
	Attempts     []Attempt `json:"attempts"`
	LastFailures []Attempt `json:"last_failures"`
	// FirstFailure is the first of the consecutive failures. LastSuccess is the success
	// before it or, while nothing fails, the last success.
	FirstFailure *Attempt `json:"first_failure,omitempty"`
	LastSuccess  *Attempt `json:"last_success,omitempty"`
	// Recent are the last attempts one by one, oldest first.
	Recent []Mark `json:"recent"`
}

// LastHour is how near a probe came to its failure_threshold and to its timeout in the last 60 to 70
// minutes.
type LastHour struct {
	// WorstRun is the most failed attempts in a row, as the thresholds count and however the run
	// ended.
	WorstRun uint64 `json:"worst_run"`
	// SlowestSuccess is the longest that a success took, absent if each took less than a tenth of
	// the timeout, or if nothing succeeded. Succeeded tells the two apart.
	SlowestSuccess float64 `json:"slowest_success_seconds,omitzero"`
	Succeeded      bool    `json:"succeeded"`
}

// Counts are how the attempts of a probe ended.
type Counts struct {
	Successful uint64 `json:"successful"`
	Failed     uint64 `json:"failed"`
	Unknown    uint64 `json:"unknown"`
	// Reasons counts the failed and unknown attempts by reason.
	Reasons map[string]uint64 `json:"reasons"`
}

// Attempt is one attempt of the past, or Count equal attempts in a row.
type Attempt struct {
	Mark
	// Last is when the last attempt began, if there are several. Start is when the first
	// attempt began. The duration is that of the last attempt.
	Last  time.Time `json:"last,omitzero"`
	Count uint64    `json:"count"`
	// ExitCode is that of a failed command: 128 plus the signal's number if a signal
	// killed the command.
	ExitCode int `json:"exit_code,omitempty"`
	// Output is the text that a kubelet would report. Body is the beginning of the body
	// beside a status that is a failure. Address is where a redirect led.
	Output  string `json:"output,omitempty"`
	Body    string `json:"body,omitempty"`
	Address string `json:"address,omitempty"`
}

// Mark is an attempt without its output.
type Mark struct {
	Start    time.Time `json:"start"`
	Duration float64   `json:"duration_seconds"`
	// Outcome is successful, failed or unknown.
	Outcome string `json:"outcome"`
	Warning bool   `json:"warning,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func newTarget(t *prober.TargetStatus, r *restart.TargetStatus) Target {
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
		Restart:  newRestart(r),
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
	for i := range t.Combined {
		out.Combined = append(out.Combined, *newCombined(&t.Combined[i]))
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
		Name:                p.Name,
		Action:              p.Action,
		Address:             p.Address,
		InitialDelay:        p.InitialDelay.Seconds(),
		Timeout:             p.Timeout.Seconds(),
		Period:              p.Period.Seconds(),
		UnhealthyPeriod:     p.UnhealthyPeriod.Seconds(),
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
		Transitions:   p.Transitions,
		LastRun:       p.LastRun.UTC(),
		NextTurn:      p.NextTurn.UTC(),
		CertExpires:   p.CertExpires.UTC(),
		LastHeartbeat: p.LastHeartbeat.UTC(),
		Attempts:      newAttempts(p.Attempts),
		LastFailures:  newAttempts(p.LastFailures),
		Recent:        make([]Mark, len(p.Marks)),
	}
	if h := p.LastHour; h != nil {
		out.LastHour = &LastHour{h.WorstRun, h.SlowestSuccess.Seconds(), h.Succeeded}
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

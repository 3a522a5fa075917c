// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector turns the status of targets into metrics.
package collector

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/restart"
)

// Prober is the collector's view of the prober; *prober.Manager implements it.
type Prober interface {
	// Status returns a snapshot of all targets.
	Status(prober.Detail) prober.Status
}

// Restarter is the collector's view of the acts; *restart.Restarter implements it.
type Restarter interface {
	// Status returns the state of all targets that have a restart block.
	Status() restart.Status
}

// id names a metric in the table below.
type id uint8

const (
	probeTotal id = iota
	probeDuration
	probeFailures
	probeSuccess
	probeConsecutiveFailures
	probeRunLength
	probeNearMisses
	probeHeld
	probeGated
	probeTransitions
	probeLastRun
	probeLastHeartbeat
	probeTimeout
	probePeriod
	probeCertExpiry
	targetRunning
	targetStarted
	targetReady
	targetLive
	targetLastTransition
	targetRestarts
	targetStartupDuration
	targetInfo
	restartActions
	restartBackOff
	restartLimited
	exporterTargets
	exporterInFlight
	exporterWaiting
	exporterSourceUp
	exporterLateness
	exporterPanics
	numMetrics
)

// The agent's own labels; a target's labels come after them.
const (
	labelTarget     = "target"
	labelProbeType  = "probe_type"
	labelProbe      = "probe" // of a member of a list
	labelResult     = "result"
	labelReason     = "reason"
	labelSource     = "source"
	labelInstanceID = "instance_id"
	labelCondition  = "condition"
)

// table lists every metric of a Status once: its name, its help and the agent's own
// labels. A series with labelProbeType also has labelProbe if its probe is a member of a list.
var table = [numMetrics]struct {
	name, help string
	labels     []string
}{
	probeTotal: {
		"prober_probe_total",
		"Attempts by result. An unknown attempt could not be made, or says nothing about the target; it changes no result.",
		[]string{labelTarget, labelProbeType, labelResult},
	},
	probeDuration: {
		"prober_probe_duration_seconds",
		"Duration of attempts by result, retries included.",
		[]string{labelTarget, labelProbeType, labelResult},
	},
	probeFailures: {
		"prober_probe_failures_total",
		"Failed and unknown attempts by reason.",
		[]string{labelTarget, labelProbeType, labelReason},
	},
	probeSuccess: {
		"prober_probe_success",
		"Whether the result of the probe, after thresholds, is Success.",
		[]string{labelTarget, labelProbeType},
	},
	probeConsecutiveFailures: {
		"prober_probe_consecutive_failures",
		"Failed attempts since the last successful one. A new instance resets the number to 0.",
		[]string{labelTarget, labelProbeType},
	},
	probeRunLength: {
		"prober_probe_failure_run_length",
		"Failed attempts in a row, for each run of them that ended in a success.",
		[]string{labelTarget, labelProbeType},
	},
	probeNearMisses: {
		"prober_probe_near_misses_total",
		"Runs of failed attempts that ended in a success one failure short of the failureThreshold.",
		[]string{labelTarget, labelProbeType},
	},
	probeHeld: {
		"prober_probe_held",
		"Whether the probe is on hold: it makes no attempts until a new instance begins or the hold expires.",
		[]string{labelTarget, labelProbeType},
	},
	probeGated: {
		"prober_probe_gated",
		"Whether the probe waits for its initial delay, for the target to start, or for an instance.",
		[]string{labelTarget, labelProbeType},
	},
	probeTransitions: {
		"prober_probe_transitions_total",
		"Changes of the result of the probe, caused by attempts.",
		[]string{labelTarget, labelProbeType},
	},
	probeLastRun: {
		"prober_probe_last_run_timestamp_seconds",
		"When the last attempt ended, in seconds since the epoch.",
		[]string{labelTarget, labelProbeType},
	},
	probeLastHeartbeat: {
		"prober_probe_last_heartbeat_timestamp_seconds",
		"When the last beat came for the heartbeat probe, in seconds since the epoch.",
		[]string{labelTarget, labelProbeType},
	},
	probeTimeout: {
		"prober_probe_timeout_seconds",
		"Configured timeout of the probe.",
		[]string{labelTarget, labelProbeType},
	},
	probePeriod: {
		"prober_probe_period_seconds",
		"Configured period of the probe.",
		[]string{labelTarget, labelProbeType},
	},
	probeCertExpiry: {
		"prober_probe_tls_earliest_cert_expiry_seconds",
		"The earliest expiry among the certificates that the server last showed, in seconds since the epoch. Absent until the server has shown a certificate.",
		[]string{labelTarget, labelProbeType},
	},
	targetRunning: {
		"prober_target_running",
		"Whether an instance of the target runs, according to its source.",
		[]string{labelTarget},
	},
	targetStarted: {
		"prober_target_started",
		"Whether the target runs and its startup probe, if any, has succeeded.",
		[]string{labelTarget},
	},
	targetReady: {
		"prober_target_ready",
		"Whether the target has started and the result of its readiness probe, if any, is Success.",
		[]string{labelTarget},
	},
	targetLive: {
		"prober_target_live",
		"0 if a kubelet would restart the target, otherwise 1. 1 also while the target does not run.",
		[]string{labelTarget},
	},
	targetLastTransition: {
		"prober_target_last_transition_timestamp_seconds",
		"When the condition started, ready or live last changed, in seconds since the epoch. Before the first change: when the agent began to watch the target.",
		[]string{labelTarget, labelCondition},
	},
	targetRestarts: {
		"prober_target_restarts_total",
		"Restarts of the target that its source has seen.",
		[]string{labelTarget},
	},
	targetStartupDuration: {
		"prober_target_startup_duration_seconds",
		"Time from the start of the instance until the target was started.",
		[]string{labelTarget},
	},
	targetInfo: {
		"prober_target_info",
		"Source of instances and ID of the current instance of the target. Always 1.",
		[]string{labelTarget, labelSource, labelInstanceID},
	},
	restartActions: {
		"prober_target_restart_actions_total",
		"Acts by which the agent restarts the target, by result. A stale act was dropped before it did anything.",
		[]string{labelTarget, labelResult},
	},
	restartBackOff: {
		"prober_target_restart_back_off_seconds",
		"What is left of the back-off before the next act may begin, 0 without a back-off.",
		[]string{labelTarget},
	},
	restartLimited: {
		"prober_target_restart_limited",
		"Whether the limit of restarts is spent: the agent does not restart the target until the window has passed.",
		[]string{labelTarget},
	},
	exporterTargets: {
		"prober_exporter_targets",
		"Targets in the running configuration.", nil,
	},
	exporterInFlight: {
		"prober_exporter_probes_in_flight",
		"Attempts in flight.", nil,
	},
	exporterWaiting: {
		"prober_exporter_reload_waiting_probes",
		"Probes that wait for the end of an attempt from before a reload.", nil,
	},
	exporterSourceUp: {
		"prober_exporter_source_up",
		"Whether the source of instances works.",
		[]string{labelSource},
	},
	exporterLateness: {
		"prober_exporter_probe_lateness_seconds",
		"Delay between the scheduled time of a turn and its start.", nil,
	},
	exporterPanics: {
		"prober_exporter_panics_total",
		"Panics caught in probes.", nil,
	},
}

// collector is unchecked, because the labels of its metrics change with the
// configuration, and a registry never forgets a label name.
type collector struct {
	snapshots
	form Histograms

	mu     sync.Mutex
	cached map[string]*descs // by label names; those of the last scrape
}

// New returns a collector of the state of all targets, of the acts and of the prober
// itself. One scrape shows one moment of the targets. Metrics come and go with targets and
// their labels, so the collector describes none of them beforehand. If r is nil, there are
// no acts.
func New(p Prober, r Restarter, h Histograms) prometheus.Collector {
	return &collector{snapshots: snapshots{p, r}, form: h}
}

// snapshots supplies what a scrape shows.
type snapshots struct {
	prober    Prober
	restarter Restarter // nil: there are no acts
}

// series returns the series of this moment.
func (s *snapshots) series() *allSeries {
	status := s.prober.Status(prober.Series)
	var acts restart.Status
	if s.restarter != nil {
		acts = s.restarter.Status()
	}
	return newSeries(&status, &acts)
}

// Describe sends nothing, which makes the collector an unchecked one.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect takes one snapshot and sends all its series. The series of a family come in
// the order of a registry, which then has nothing to sort.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	cache := c.descs()
	s := c.series()
	s.describe(&cache)
	for m := range families {
		f := &families[m]
		of := f.of(s)
		for i := range of {
			if v, known := f.value(&of[i]); known {
				ch <- c.metric(id(m), &of[i], v)
			}
		}
	}
	c.keep(cache.used)
}

func (c *collector) metric(m id, s *series, v float64) prometheus.Metric {
	desc := metric{s.descs[m], s.labels}
	switch families[m].kind {
	case dto.MetricType_COUNTER:
		return &counter{desc, v}
	case dto.MetricType_HISTOGRAM:
		return &histogram{desc, c.form.bounds(m), s.histogram}
	default:
		return &gauge{desc, v}
	}
}

// seconds returns the time since the epoch.
func seconds(t time.Time) float64 {
	// Nanoseconds since the epoch are more than a float64 holds exactly.
	return float64(t.Unix()) + float64(t.Nanosecond())/1e9
}

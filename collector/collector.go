// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector turns what the prober says of its targets into metrics.
package collector

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/prober-exporter/prober_exporter/prober"
)

// Prober is whom the collector asks at every scrape; a prober.Manager is one.
type Prober interface {
	// Status returns a copy of the truth at one moment.
	Status(prober.Detail) prober.Status
}

// id names a metric in the table below.
type id uint8

const (
	probeTotal id = iota
	probeDuration
	probeFailures
	probeSuccess
	probeConsecutiveFailures
	probeHeld
	probeGated
	probeTransitions
	probeLastRun
	probeTimeout
	probePeriod
	targetRunning
	targetStarted
	targetReady
	targetLive
	targetLastTransition
	targetRestarts
	targetStartupDuration
	targetInfo
	exporterTargets
	exporterInFlight
	exporterWaiting
	exporterSourceUp
	exporterLateness
	exporterPanics
	numMetrics
)

// The labels that are ours; a target's own come after them.
const (
	labelTarget     = "target"
	labelProbeType  = "probe_type"
	labelResult     = "result"
	labelReason     = "reason"
	labelSource     = "source"
	labelInstanceID = "instance_id"
	labelCondition  = "condition"
)

// table lists every metric of a Status once: its name, its help and the labels
// that are ours.
var table = [numMetrics]struct {
	name, help string
	labels     []string
}{
	probeTotal: {
		"prober_probe_total",
		"Probes run, by result; unknown ones could not be attempted and count for nothing.",
		[]string{labelTarget, labelProbeType, labelResult},
	},
	probeDuration: {
		"prober_probe_duration_seconds",
		"Duration of the probes run, by result.",
		[]string{labelTarget, labelProbeType, labelResult},
	},
	probeFailures: {
		"prober_probe_failures_total",
		"Failed and unknown probes, by reason.",
		[]string{labelTarget, labelProbeType, labelReason},
	},
	probeSuccess: {
		"prober_probe_success",
		"Whether the probe's result after thresholds is Success.",
		[]string{labelTarget, labelProbeType},
	},
	probeConsecutiveFailures: {
		"prober_probe_consecutive_failures",
		"Failed attempts since the last success; 0 at a new instance.",
		[]string{labelTarget, labelProbeType},
	},
	probeHeld: {
		"prober_probe_held",
		"Whether the probe is on hold until there is a new instance.",
		[]string{labelTarget, labelProbeType},
	},
	probeGated: {
		"prober_probe_gated",
		"Whether the probe waits for its initial delay, for the target to be started, or for an instance.",
		[]string{labelTarget, labelProbeType},
	},
	probeTransitions: {
		"prober_probe_transitions_total",
		"Changes of the probe's published result by probing.",
		[]string{labelTarget, labelProbeType},
	},
	probeLastRun: {
		"prober_probe_last_run_timestamp_seconds",
		"When the last attempt ended, in seconds since the epoch.",
		[]string{labelTarget, labelProbeType},
	},
	probeTimeout: {
		"prober_probe_timeout_seconds",
		"The probe's configured timeout.",
		[]string{labelTarget, labelProbeType},
	},
	probePeriod: {
		"prober_probe_period_seconds",
		"The probe's configured period.",
		[]string{labelTarget, labelProbeType},
	},
	targetRunning: {
		"prober_target_running",
		"Whether the source says that an instance of the target runs.",
		[]string{labelTarget},
	},
	targetStarted: {
		"prober_target_started",
		"Whether the target has started.",
		[]string{labelTarget},
	},
	targetReady: {
		"prober_target_ready",
		"Whether the target has started and its readiness result is Success.",
		[]string{labelTarget},
	},
	targetLive: {
		"prober_target_live",
		"Whether a kubelet would leave the target alone.",
		[]string{labelTarget},
	},
	targetLastTransition: {
		"prober_target_last_transition_timestamp_seconds",
		"When started, ready or live changed last, in seconds since the epoch; where it has not, since when the agent has watched the target.",
		[]string{labelTarget, labelCondition},
	},
	targetRestarts: {
		"prober_target_restarts_total",
		"Instances of the target after the first.",
		[]string{labelTarget},
	},
	targetStartupDuration: {
		"prober_target_startup_duration_seconds",
		"Time from the instance's start until it was started.",
		[]string{labelTarget},
	},
	targetInfo: {
		"prober_target_info",
		"The target's instance and where instances come from; always 1.",
		[]string{labelTarget, labelSource, labelInstanceID},
	},
	exporterTargets: {
		"prober_exporter_targets",
		"Targets in the running configuration.", nil,
	},
	exporterInFlight: {
		"prober_exporter_probes_in_flight",
		"Attempts that are running.", nil,
	},
	exporterWaiting: {
		"prober_exporter_reload_waiting_probes",
		"Probes that wait for an attempt from before a reload to end.", nil,
	},
	exporterSourceUp: {
		"prober_exporter_source_up",
		"Whether the instance source works.",
		[]string{labelSource},
	},
	exporterLateness: {
		"prober_exporter_probe_lateness_seconds",
		"How late after its scheduled time a probe's turn began.", nil,
	},
	exporterPanics: {
		"prober_exporter_panics_total",
		"Panics caught in a probe.", nil,
	},
}

// collector is unchecked: which labels its metrics have changes with the
// configuration, and a registry never forgets a label name that it was told.
type collector struct {
	prober Prober
	bounds []float64 // of the classic buckets; nil: there are none

	mu     sync.Mutex
	cached map[string]*descs // by label names; those of the last scrape
}

// New returns a collector of everything that the prober says of its targets and of
// itself. One scrape shows one moment. Its metrics come and go with targets and
// their labels, so it describes none of them beforehand.
func New(p Prober, h Histograms) prometheus.Collector {
	return &collector{prober: p, bounds: h.bounds()}
}

// Describe sends nothing, which makes the collector an unchecked one.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect takes one snapshot and sends all series of it, each family's in the order
// in which a registry wants them: it then finds them sorted.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	status := c.prober.Status(prober.Series)
	cache := c.descs()
	s := newSeries(&status)
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
		return &histogram{desc, c.bounds, s.histogram}
	default:
		return &gauge{desc, v}
	}
}

// seconds returns the time since the epoch.
func seconds(t time.Time) float64 {
	// Nanoseconds since the epoch are more than a float64 holds exactly.
	return float64(t.Unix()) + float64(t.Nanosecond())/1e9
}

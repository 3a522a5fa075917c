// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/restart"
)

// series is one set of labels, and the source of its values. Several families share it.
type series struct {
	labels labels
	descs  *descs // nil unless a registry needs them
	text   string // the labels as text, without braces; empty unless asked for

	status    *prober.Status
	target    *prober.TargetStatus
	probe     *prober.ProbeStatus
	restart   *restart.TargetStatus
	count     uint64 // of a source: 1 if it is up
	histogram *prober.Histogram
	changed   *time.Time
}

// allSeries is one snapshot as series, in the order of their labels.
type allSeries struct {
	exporter, sources         []series
	targets, infos            []series
	conditions                []series
	probes, outcomes, reasons []series
	runs                      []series // of the probes that have failed
	restarts, acts            []series
}

// family has the series of a metric and their values.
type family struct {
	kind  dto.MetricType
	of    func(*allSeries) []series
	value func(*series) (v float64, known bool) // for a histogram only known counts
}

func ofExporter(a *allSeries) []series   { return a.exporter }
func ofSources(a *allSeries) []series    { return a.sources }
func ofTargets(a *allSeries) []series    { return a.targets }
func ofInfos(a *allSeries) []series      { return a.infos }
func ofConditions(a *allSeries) []series { return a.conditions }
func ofProbes(a *allSeries) []series     { return a.probes }
func ofOutcomes(a *allSeries) []series   { return a.outcomes }
func ofReasons(a *allSeries) []series    { return a.reasons }
func ofRuns(a *allSeries) []series       { return a.runs }
func ofRestarts(a *allSeries) []series   { return a.restarts }
func ofActs(a *allSeries) []series       { return a.acts }

const (
	isGauge     = dto.MetricType_GAUGE
	isCounter   = dto.MetricType_COUNTER
	isHistogram = dto.MetricType_HISTOGRAM
)

// families has a row for each row of table, for the same metric.
var families = [numMetrics]family{
	probeTotal:    {isCounter, ofOutcomes, func(s *series) (float64, bool) { return float64(s.count), true }},
	probeDuration: {isHistogram, ofOutcomes, func(s *series) (float64, bool) { return 0, s.histogram.Count > 0 }},
	probeFailures: {isCounter, ofReasons, func(s *series) (float64, bool) { return float64(s.count), true }},
	probeSuccess:  {isGauge, ofProbes, func(s *series) (float64, bool) { return number(s.probe.Result == gate.Success) }},
	probeConsecutiveFailures: {isGauge, ofProbes, func(s *series) (float64, bool) {
		return float64(s.probe.ConsecutiveFailures), true
	}},
	probeRunLength:   {isHistogram, ofRuns, func(s *series) (float64, bool) { return 0, s.histogram.Count > 0 }},
	probeNearMisses:  {isCounter, ofRuns, func(s *series) (float64, bool) { return float64(s.count), true }},
	probeHeld:        {isGauge, ofProbes, func(s *series) (float64, bool) { return number(s.probe.Held) }},
	probeGated:       {isGauge, ofProbes, func(s *series) (float64, bool) { return number(s.probe.Gated) }},
	probeTransitions: {isCounter, ofProbes, func(s *series) (float64, bool) { return float64(s.probe.Transitions), true }},
	probeLastRun: {isGauge, ofProbes, func(s *series) (float64, bool) {
		return seconds(s.probe.LastRun), !s.probe.LastRun.IsZero()
	}},
	probeLastHeartbeat: {isGauge, ofProbes, func(s *series) (float64, bool) {
		return seconds(s.probe.LastHeartbeat), !s.probe.LastHeartbeat.IsZero()
	}},
	probeTimeout: {isGauge, ofProbes, func(s *series) (float64, bool) { return s.probe.Timeout.Seconds(), true }},
	probePeriod:  {isGauge, ofProbes, func(s *series) (float64, bool) { return s.probe.Period.Seconds(), true }},
	probeCertExpiry: {isGauge, ofProbes, func(s *series) (float64, bool) {
		return seconds(s.probe.CertExpires), !s.probe.CertExpires.IsZero()
	}},
	targetRunning: {isGauge, ofTargets, func(s *series) (float64, bool) { return number(s.target.Running) }},
	targetStarted: {isGauge, ofTargets, func(s *series) (float64, bool) { return number(s.target.Started) }},
	targetReady:   {isGauge, ofTargets, func(s *series) (float64, bool) { return number(s.target.Ready) }},
	targetLive:    {isGauge, ofTargets, func(s *series) (float64, bool) { return number(s.target.Live) }},
	targetLastTransition: {isGauge, ofConditions, func(s *series) (float64, bool) {
		return seconds(*s.changed), !s.changed.IsZero()
	}},
	targetRestarts: {isCounter, ofTargets, func(s *series) (float64, bool) { return float64(s.target.Restarts), true }},
	targetStartupDuration: {isGauge, ofTargets, func(s *series) (float64, bool) {
		return s.target.StartupDuration.Seconds(), s.target.StartupDuration >= 0
	}},
	targetInfo:       {isGauge, ofInfos, func(*series) (float64, bool) { return 1, true }},
	restartActions:   {isCounter, ofActs, func(s *series) (float64, bool) { return float64(s.count), true }},
	restartBackOff:   {isGauge, ofRestarts, func(s *series) (float64, bool) { return s.restart.BackOffLeft.Seconds(), true }},
	restartLimited:   {isGauge, ofRestarts, func(s *series) (float64, bool) { return number(s.restart.Limited) }},
	exporterTargets:  {isGauge, ofExporter, func(s *series) (float64, bool) { return float64(s.status.Targets), true }},
	exporterInFlight: {isGauge, ofExporter, func(s *series) (float64, bool) { return float64(s.status.InFlight), true }},
	exporterWaiting:  {isGauge, ofExporter, func(s *series) (float64, bool) { return float64(s.status.Waiting), true }},
	exporterSourceUp: {isGauge, ofSources, func(s *series) (float64, bool) { return float64(s.count), true }},
	exporterLateness: {isHistogram, ofExporter, func(*series) (float64, bool) { return 0, true }},
	exporterPanics:   {isCounter, ofExporter, func(s *series) (float64, bool) { return float64(s.status.Panics), true }},
}

// number returns a bool as a value, which is always known.
func number(is bool) (v float64, known bool) {
	if is {
		v = 1
	}
	return v, true
}

// newSeries makes the series of a snapshot. They keep reading the snapshot.
func newSeries(status *prober.Status, acts *restart.Status) *allSeries {
	a := &allSeries{exporter: []series{{status: status, histogram: &status.Lateness}}}
	for source, up := range status.SourceUp {
		s := series{labels: labels{}.with(labelSource, source)}
		if up {
			s.count = 1
		}
		a.sources = append(a.sources, s)
	}
	a.targets = make([]series, 0, len(status.Statuses))
	a.infos = make([]series, 0, len(status.Statuses))
	a.conditions = make([]series, 0, 3*len(status.Statuses))
	for i := range status.Statuses {
		t := &status.Statuses[i]
		of := series{labels: targetLabels(t.Name, t.Labels), target: t}
		a.targets = append(a.targets, of)
		a.infos = append(a.infos, of.with(labelSource, t.Source).with(labelInstanceID, t.Instance.ID))
		a.addConditions(of)
	}
	a.addProbes()
	a.addRestarts(acts)
	for _, of := range a.lists() {
		sortSeries(of)
	}
	return a
}

// addConditions adds the series of the conditions of a target.
func (a *allSeries) addConditions(of series) {
	t := of.target
	for _, c := range [...]struct {
		name    string
		changed *time.Time
	}{{"live", &t.Changed.Live}, {"ready", &t.Changed.Ready}, {"started", &t.Changed.Started}} {
		s := of.with(labelCondition, c.name)
		s.changed = c.changed
		a.conditions = append(a.conditions, s)
	}
}

// addRestarts adds the series of the targets that have a restart block.
func (a *allSeries) addRestarts(acts *restart.Status) {
	for i := range acts.Targets {
		t := &acts.Targets[i]
		of := series{labels: targetLabels(t.Name, t.Labels), restart: t}
		a.restarts = append(a.restarts, of)
		for _, r := range restart.Results() {
			s := of.with(labelResult, string(r))
			s.count = t.Counts.Of(r)
			a.acts = append(a.acts, s)
		}
	}
}

// own returns the target's own labels, none for a series of the agent.
func (s *series) own() []config.Label {
	switch {
	case s.target != nil:
		return s.target.Labels
	case s.restart != nil:
		return s.restart.Labels
	default:
		return nil
	}
}

// with returns the series with one more label.
func (s series) with(name, value string) series {
	s.labels = s.labels.with(name, value)
	return s
}

func sortSeries(of []series) {
	slices.SortFunc(of, func(x, y series) int { return compareLabels(x.labels, y.labels) })
}

// of returns the series of a probe of the target. The label probe is for members of lists alone,
// so that no series of a target without lists ever gets another label.
func (s series) of(p *prober.ProbeStatus) series {
	s = s.with(labelProbeType, prober.ProbeType(p.Kind))
	if p.Name != "" {
		s = s.with(labelProbe, p.Name)
	}
	s.probe = p
	return s
}

// member reports whether the series is of a member of a list.
func (s *series) member() bool { return s.probe != nil && s.probe.Name != "" }

// addProbes adds the series of probes by type, result and target: already the final order,
// unless targets have labels that sort before these, or lists of probes.
func (a *allSeries) addProbes() {
	sortSeries(a.targets)
	byType := map[string][]series{}
	for i := range a.targets {
		t := a.targets[i].target
		for j := range t.Probes {
			kind := prober.ProbeType(t.Probes[j].Kind)
			byType[kind] = append(byType[kind], a.targets[i].of(&t.Probes[j]))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byType)) {
		of := byType[kind]
		a.probes = append(a.probes, of...)
		a.outcomes = slices.Grow(a.outcomes, len(of)*int(prober.UnknownOutcome+1))
		for _, outcome := range []prober.AttemptOutcome{prober.Failed, prober.Successful, prober.UnknownOutcome} {
			for _, s := range of {
				a.outcomes = append(a.outcomes, s.outcome(outcome))
			}
		}
		for _, s := range of {
			if runs := s.probe.Runs; runs != nil {
				r := s
				r.count, r.histogram = runs.NearMisses, &runs.Lengths
				a.runs = append(a.runs, r)
			}
			for _, f := range s.probe.Failures {
				r := s.with(labelReason, string(f.Reason))
				r.count = f.Count
				a.reasons = append(a.reasons, r)
			}
		}
	}
}

// outcome returns the series of one outcome of a probe.
func (s series) outcome(o prober.AttemptOutcome) series {
	p := s.probe
	s = s.with(labelResult, o.String())
	switch o {
	case prober.Successful:
		s.count, s.histogram = p.Successful, &p.Durations.Successful
	case prober.Failed:
		s.count, s.histogram = p.Failed, &p.Durations.Failed
	case prober.UnknownOutcome:
		s.count, s.histogram = p.Unknown, &p.Durations.Unknown
	}
	return s
}

// lists returns each list of series once.
func (a *allSeries) lists() [11][]series {
	return [11][]series{
		a.exporter, a.sources, a.targets, a.infos, a.conditions, a.probes, a.outcomes, a.reasons, a.runs, a.restarts, a.acts,
	}
}

// describe gives each series its descriptors.
func (a *allSeries) describe(cache *descCache) {
	for _, of := range a.lists() {
		for i := range of {
			of[i].descs = cache.of(of[i].own(), of[i].member())
		}
	}
}

// compareLabels is the order of a registry: the number of labels, then their values,
// in the order of their names.
func compareLabels(a, b labels) int {
	if n := cmp.Compare(len(a), len(b)); n != 0 {
		return n
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if n := strings.Compare(a[i].GetValue(), b[i].GetValue()); n != 0 {
			return n
		}
	}
	return 0
}

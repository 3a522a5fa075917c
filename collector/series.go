// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/prober-exporter/prober_exporter/config"
)

// metric is the common part of all metrics here.
type metric struct {
	desc   *prometheus.Desc
	labels labels
}

// Desc returns the metric's descriptor.
func (m *metric) Desc() *prometheus.Desc { return m.desc }

// gauge and counter are prometheus.NewConstMetric but for the labels: the dozen
// series of a probe share theirs, which is most of what a large scrape allocates.
type gauge struct {
	metric
	value float64
}

// Write fills in a gauge.
func (g *gauge) Write(out *dto.Metric) error {
	out.Label, out.Gauge = g.labels, &dto.Gauge{Value: &g.value}
	return nil
}

type counter struct {
	metric
	value float64
}

// Write fills in a counter.
func (c *counter) Write(out *dto.Metric) error {
	out.Label, out.Counter = c.labels, &dto.Counter{Value: &c.value}
	return nil
}

// labels are the label pairs of a series, sorted by name. They are shared by
// series, so they are never changed.
type labels []*dto.LabelPair

// with returns a copy with one more pair.
func (ls labels) with(name, value string) labels {
	i, _ := slices.BinarySearchFunc(ls, name, func(p *dto.LabelPair, name string) int {
		return strings.Compare(p.GetName(), name)
	})
	c := make(labels, 0, len(ls)+1)
	c = append(c, ls[:i]...)
	c = append(c, pair(name, value))
	return append(c, ls[i:]...)
}

// targetLabels returns the pairs that all series of a target have.
func targetLabels(name string, of []config.Label) labels {
	own := make(labels, len(of))
	for i, l := range of {
		own[i] = pair(l.Name, l.Value)
	}
	return own.with(labelTarget, name)
}

// pair returns a label pair. A value may come from the environment and be any bytes. A
// value that is not UTF-8 would fail the scrape of all targets.
func pair(name, value string) *dto.LabelPair {
	value = strings.ToValidUTF8(value, "\uFFFD")
	return &dto.LabelPair{Name: &name, Value: &value}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/prober-exporter/prober_exporter/podstatus"
)

var (
	kubernetesWritesDesc = prometheus.NewDesc("prober_exporter_kubernetes_writes_total",
		"Writes of conditions and events to the agent's own pod by result.", []string{"object", labelResult}, nil)
	kubernetesSyncedDesc = prometheus.NewDesc("prober_exporter_kubernetes_synced",
		"Whether the agent's own pod has the conditions that the agent wants it to have.", nil, nil)
)

// kubernetes is a collector of what has been written to the agent's own pod.
type kubernetes struct {
	counts func() (podstatus.Counts, bool)
}

// NewKubernetes returns a collector of what has been written to the agent's own pod. The
// collector has no series while counts returns false.
func NewKubernetes(counts func() (podstatus.Counts, bool)) prometheus.Collector {
	return &kubernetes{counts}
}

// Describe sends the two descriptors.
func (k *kubernetes) Describe(ch chan<- *prometheus.Desc) {
	ch <- kubernetesWritesDesc
	ch <- kubernetesSyncedDesc
}

// Collect sends a series for each result of each object, and whether the pod is in sync.
func (k *kubernetes) Collect(ch chan<- prometheus.Metric) {
	c, on := k.counts()
	if !on {
		return
	}
	for _, s := range []struct {
		object, result string
		n              uint64
	}{
		{"condition", "succeeded", c.ConditionsSucceeded},
		{"condition", "failed", c.ConditionsFailed},
		{"event", "succeeded", c.EventsSucceeded},
		{"event", "failed", c.EventsFailed},
		{"event", "dropped", c.EventsDropped},
	} {
		ch <- prometheus.MustNewConstMetric(kubernetesWritesDesc, prometheus.CounterValue, float64(s.n), s.object, s.result)
	}
	synced := 0.0
	if c.Synced {
		synced = 1
	}
	ch <- prometheus.MustNewConstMetric(kubernetesSyncedDesc, prometheus.GaugeValue, synced)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	reloadSuccessfulDesc = prometheus.NewDesc("prober_exporter_config_last_reload_successful",
		"Whether the last attempt to load the configuration succeeded.", nil, nil)
	reloadSuccessTimeDesc = prometheus.NewDesc("prober_exporter_config_last_reload_success_timestamp_seconds",
		"When a configuration was last loaded successfully, in seconds since the epoch.", nil, nil)
)

// Reload is a collector of the result of the last load of a configuration. The zero value
// means that no load has succeeded. It is safe for concurrent use.
type Reload struct {
	mu      sync.Mutex
	ok      bool
	success time.Time // of the last one; zero: never
}

var _ prometheus.Collector = (*Reload)(nil)

// SetResult records whether a load succeeded, and when it ended.
func (r *Reload) SetResult(ok bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ok = ok
	if ok {
		r.success = at
	}
}

// Describe sends the two descriptors.
func (r *Reload) Describe(ch chan<- *prometheus.Desc) {
	ch <- reloadSuccessfulDesc
	ch <- reloadSuccessTimeDesc
}

// Collect sends whether the last load succeeded and, once one has, when.
func (r *Reload) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	ok, success := r.ok, r.success
	r.mu.Unlock()

	value := 0.0
	if ok {
		value = 1
	}
	ch <- prometheus.MustNewConstMetric(reloadSuccessfulDesc, prometheus.GaugeValue, value)
	if !success.IsZero() {
		ch <- prometheus.MustNewConstMetric(reloadSuccessTimeDesc, prometheus.GaugeValue, seconds(success))
	}
}

// NewLogLines returns a collector of the number of lost log lines.
func NewLogLines(lost func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "prober_exporter_log_lines_dropped_total",
		Help: "Log lines that were lost because nobody read them or because writing failed.",
	}, func() float64 { return float64(lost()) })
}

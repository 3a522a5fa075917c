// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import "github.com/prometheus/client_golang/prometheus"

// NewUnknownTargets returns the counter of requests for targets that are not configured.
// Each endpoint has a series from the beginning: otherwise nobody would see the first
// request as an increase.
func NewUnknownTargets(endpoints ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "prober_exporter_unknown_target_requests_total",
		Help: "Requests to the health endpoints for targets that are not configured.",
	}, []string{"endpoint"})
	for _, endpoint := range endpoints {
		c.WithLabelValues(endpoint)
	}
	return c
}

// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package collector

import "github.com/prometheus/client_golang/prometheus"

// NewUnknownTargets returns the counter of requests for targets that are not configured,
// with a series for each of the endpoints from the beginning: else nobody would see the
// first request as an increase.
func NewUnknownTargets(endpoints ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "prober_exporter_unknown_target_requests_total",
		Help: "Requests of the health endpoints for targets that are not configured.",
	}, []string{"endpoint"})
	for _, endpoint := range endpoints {
		c.WithLabelValues(endpoint)
	}
	return c
}

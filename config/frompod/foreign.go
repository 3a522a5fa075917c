// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package frompod

// foreignKeys are the keys of a probe that a configuration has and a Pod has not.
var foreignKeys = []string{"heartbeat", "unhealthyPeriodSeconds"}

// foreign reports the keys of a probe that an API server would not take.
func (c *converter) foreign(probe place) {
	for _, key := range foreignKeys {
		if p := probe.get(key); p.node != nil {
			c.wrong(p.node.Line, p.path, "unknown key: a Pod has no such key")
		}
	}
}

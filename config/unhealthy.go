// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// unhealthyPeriod returns the unhealthyPeriodSeconds of p, whose period and threshold are
// known already; 0 if the file has none. A liveness probe must not have the key: the key would
// only shorten the time to a kill.
func (d *decoder) unhealthyPeriod(v value, kind gate.Kind, p *Probe) time.Duration {
	if !v.set() {
		return 0
	}
	if kind == gate.Liveness {
		d.wrong(v, "must not be set for livenessProbes")
		return 0
	}
	period := d.seconds(v)
	if period > p.Period {
		d.wrong(v, "must be at most periodSeconds (%s), is %s", formatSeconds(p.Period), formatSeconds(period))
		return 0
	}
	if kind == gate.Startup && 0 < period && period < p.Period {
		d.noticef(Info, v.line, v.path(), "the probe fails after %s s (failureThreshold × unhealthyPeriodSeconds), not after %s s: raise failureThreshold if a start may take longer",
			formatSeconds(times(p.FailureThreshold, period)), formatSeconds(times(p.FailureThreshold, p.Period)))
	}
	return period
}

// times returns n × d, or the longest duration if the product is longer. n is positive.
func times(n int, d time.Duration) time.Duration {
	if d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// counts are the counters behind a probe's series.
type counts struct {
	successful  sparse
	others      *others // nil until an attempt does not succeed or is slow: most probes never are
	transitions uint64
}

// others counts the attempts that did not succeed, and how near the probe came to its limits.
type others struct {
	failed, unknown sparse
	reasons         []ReasonCount
	margins         margins
}

// need returns the counters that most probes do not need.
func (c *counts) need() *others {
	if c.others == nil {
		c.others = new(others)
	}
	return c.others
}

// of returns the durations of the attempts with an outcome.
func (c *counts) of(o AttemptOutcome) *sparse {
	switch {
	case o == Successful:
		return &c.successful
	case c.others == nil:
		return new(sparse)
	case o == Failed:
		return &c.others.failed
	}
	return &c.others.unknown
}

func (c *counts) count(o AttemptOutcome, reason action.Reason, d time.Duration) {
	if o != Successful {
		c.need().because(reason)
	}
	c.of(o).observe(d)
}

// because counts one attempt with a reason.
func (u *others) because(reason action.Reason) {
	i := slices.IndexFunc(u.reasons, func(r ReasonCount) bool { return r.Reason == reason })
	if i < 0 {
		i = len(u.reasons)
		u.reasons = append(u.reasons, ReasonCount{Reason: reason})
	}
	u.reasons[i].Count++
}

// cloneCounts returns a copy that shares no state.
func (c *counts) cloneCounts() counts {
	n := counts{successful: c.successful.clone(), transitions: c.transitions}
	if c.others != nil {
		n.others = &others{
			failed:  c.others.failed.clone(),
			unknown: c.others.unknown.clone(),
			reasons: slices.Clone(c.others.reasons),
			margins: c.others.margins,
		}
		n.others.margins.runs = c.others.margins.runs.clone()
	}
	return n
}

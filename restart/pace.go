// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// This file decides when an act may begin. It has no clock and no I/O.

// moment is a time, counted from the start of the agent: no clock that somebody sets counts.
type moment = time.Duration

// pace is what decides when the next act of a target may begin: how many acts there were, and
// when. A pace is a value. The zero value is that of an agent that has just started: what an agent
// before it has done is unknown, so the first act waits for the initial back-off.
type pace struct {
	// inRow counts the acts since the back-off was last forgotten, and ended is when the last
	// of them ended or, as long as it is under way, began.
	inRow int
	ended moment
	// begun has when the last acts began, at their number modulo its length. total counts all.
	begun [config.MaxLimit]moment
	total int
}

// begin returns the pace after the beginning of an act.
func (p pace) begin(b config.BackOff, now moment) pace {
	if p.forgets(b, now) {
		p.inRow = 0
	}
	p.inRow++
	p.ended = now
	p.begun[p.total%len(p.begun)] = now
	p.total++
	return p
}

// end returns the pace after the end of the act that began last.
func (p pace) end(now moment) pace {
	p.ended = now
	return p
}

// forgets reports whether the back-off is forgotten: there was no act for so long.
func (p pace) forgets(b config.BackOff, now moment) bool {
	return p.inRow > 0 && now-p.ended >= b.Reset
}

// backOff returns the length of the present back-off, and when it is over.
func (p pace) backOff(b config.BackOff) (length time.Duration, over moment) {
	length = b.Initial
	for i := 1; i < p.inRow && length < b.Max; i++ {
		length = min(2*length, b.Max) // both fit: a key of the file has 31 bits of seconds
	}
	return length, p.ended + length
}

// limited returns until when the limit is spent; 0 if there is no limit, or never was.
func (p pace) limited(l config.Limit) (until moment) {
	if l.Restarts == 0 || p.total < l.Restarts {
		return 0
	}
	return p.begun[(p.total-l.Restarts)%len(p.begun)] + l.Window
}

// notBefore returns when the next act may begin.
func (p pace) notBefore(r *config.Restart) moment {
	_, over := p.backOff(r.BackOff)
	return max(over, p.limited(r.Limit))
}

// spent reports whether the pace says no more than that of a target that never had an act.
func (p pace) spent(r *config.Restart, now moment) bool {
	if p.total == 0 {
		return true
	}
	last := p.begun[(p.total-1)%len(p.begun)]
	return p.forgets(r.BackOff, now) && now >= last+r.Limit.Window
}

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

package prober

import (
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

const (
	// historySize is how many attempts a probe remembers: so many that succeeded and
	// so many that did not, each in a ring of their own, so that neither pushes the
	// other out.
	historySize = 20
	// How many bytes of an attempt's output are remembered. A body is of interest
	// where it explains a failure.
	maxSuccessOutput = 256
	maxFailureOutput = 1024
)

// record is an attempt as it is told.
type record struct {
	start    int64 // Unix nanoseconds
	duration time.Duration
	reason   action.Reason
	output   string
	outcome  AttemptOutcome
	warning  bool
}

// kept is a record as a ring keeps it, packed.
type kept struct {
	start    int64
	duration time.Duration
	output   string
	reason   unique.Handle[action.Reason] // half of a string's size: there are 20 a probe
	outcome  AttemptOutcome
	warning  bool
}

func (k *kept) attempt() Attempt {
	return Attempt{
		Start:    time.Unix(0, k.start),
		Duration: k.duration,
		Outcome:  k.outcome,
		Warning:  k.warning,
		Reason:   k.reason.Value(),
		Output:   k.output,
	}
}

// ring keeps the last historySize records. It grows as they come.
type ring struct {
	records []kept
	next    uint8 // the oldest one, once the ring is full
}

func (r *ring) add(rec record, maxOutput int) {
	rec.output = r.intern(cut(rec.output, maxOutput))
	k := kept{
		start:    rec.start,
		duration: rec.duration,
		output:   rec.output,
		reason:   unique.Make(rec.reason),
		outcome:  rec.outcome,
		warning:  rec.warning,
	}
	if n := len(r.records); n < historySize {
		if n == cap(r.records) { // a full ring has no room that is never used
			r.records = append(make([]kept, 0, min(max(1, 2*n), historySize)), r.records...)
		}
		r.records = append(r.records, k)
		return
	}
	r.records[r.next] = k
	r.next = (r.next + 1) % historySize
}

// intern returns the last record's output if it is equal, as it is for most probes
// most of the time; else a copy, as s may be a small part of a large string.
func (r *ring) intern(s string) string {
	if n := len(r.records); n > 0 {
		if last := r.records[(int(r.next)+n-1)%n].output; last == s {
			return last
		}
	}
	return strings.Clone(s)
}

// attempts returns the records, oldest first.
func (r *ring) attempts() []Attempt {
	all := make([]Attempt, 0, len(r.records))
	for i := range r.records {
		all = append(all, r.records[(int(r.next)+i)%len(r.records)].attempt())
	}
	return all
}

// clone returns a copy that shares no state.
func (r *ring) clone() ring { return ring{records: slices.Clone(r.records), next: r.next} }

// history is the last attempts of a probe.
type history struct {
	successes ring
	failures  *failures // nil while there is none: most probes never fail
}

// failures is what is known of the attempts that did not succeed.
type failures struct {
	ring
	streak uint64        // failed ones since the last success
	reason action.Reason // of the last of them
	unable action.Reason // of the last attempt, if it could not be made
}

// attempts returns the records, oldest first.
func (f *failures) attempts() []Attempt {
	if f == nil {
		return []Attempt{}
	}
	return f.ring.attempts()
}

// forget ends the streak.
func (f *failures) forget() {
	if f != nil {
		f.streak, f.reason, f.unable = 0, "", ""
	}
}

func (h *history) add(rec record) {
	if rec.outcome == Successful {
		h.successes.add(rec, maxSuccessOutput)
	} else {
		if h.failures == nil {
			h.failures = new(failures)
		}
		h.failures.add(rec, maxFailureOutput)
	}
}

// last returns the last historySize attempts of either kind, oldest first.
func (h *history) last() []Attempt {
	all := append(h.successes.attempts(), h.failures.attempts()...)
	slices.SortStableFunc(all, func(a, b Attempt) int { return a.Start.Compare(b.Start) })
	return all[max(0, len(all)-historySize):]
}

func (h *history) clone() history {
	c := history{successes: h.successes.clone()}
	if f := h.failures; f != nil {
		c.failures = &failures{ring: f.clone(), streak: f.streak, reason: f.reason}
	}
	return c
}

// cut returns at most limit bytes of s, without splitting a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit]
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// This file remembers the last attempts of a probe in little memory.

const (
	// historySize is how many attempts a probe remembers one by one, and how many lines of
	// equal attempts in a row. Successes and the other outcomes have historySize lines each,
	// so that neither push the others out.
	historySize = 20
	// The most bytes that a probe remembers of an attempt's output and of a failure's body.
	maxSuccessOutput = 256
	maxFailureOutput = 1024
	maxBody          = 256
)

// record is an attempt before the history packs it.
type record struct {
	start    int64 // Unix nanoseconds
	duration time.Duration
	reason   action.Reason
	output   string
	body     string
	address  string
	exitCode int
	outcome  AttemptOutcome
	warning  bool
}

// mark is a single attempt, packed: when it began, how long it took and how it ended. The
// line that contains the attempt has the reason.
type mark struct {
	start   int64
	seconds float32
	outcome AttemptOutcome
	warning bool
}

// line is equal attempts in a row, packed.
type line struct {
	first, last int64 // when the first and the last attempt began, Unix nanoseconds
	duration    time.Duration
	output      string
	more        *more                        // of the last attempt; nil for most
	reason      unique.Handle[action.Reason] // half of a string's size
	count       uint32                       // stops at the largest value
	outcome     AttemptOutcome
	warning     bool
}

// more is what only some failures have.
type more struct {
	body, address string
	exitCode      int
}

// newLine returns a line of one attempt. It copies the texts, which may be small parts of
// large strings.
func newLine(rec record) line {
	l := line{
		first:    rec.start,
		last:     rec.start,
		duration: rec.duration,
		count:    1,
		output:   strings.Clone(rec.output),
		reason:   unique.Make(rec.reason),
		outcome:  rec.outcome,
		warning:  rec.warning,
	}
	l.tell(rec)
	return l
}

// told returns what only some failures have, or the zero value.
func (l *line) told() more {
	if l.more == nil {
		return more{}
	}
	return *l.more
}

// tell stores what only some failures have.
func (l *line) tell(rec record) {
	if (l.told() != more{rec.body, rec.address, rec.exitCode}) {
		l.more = &more{strings.Clone(rec.body), strings.Clone(rec.address), rec.exitCode}
	}
}

// same reports whether an attempt equals those of the line. The body is not compared: it may
// contain a time or a number that differs each time.
func (l *line) same(rec record) bool {
	return l.outcome == rec.outcome && l.warning == rec.warning && l.told().exitCode == rec.exitCode &&
		l.reason.Value() == rec.reason && sameOutput(l.output, rec.output)
}

// sameOutput compares outputs except for the local port of a connection, which differs each
// time.
func sameOutput(a, b string) bool {
	if a == b {
		return true
	}
	fromA, toA, arrow := strings.Cut(a, "->")
	fromB, toB, _ := strings.Cut(b, "->")
	if !arrow || toA != toB {
		return false
	}
	const digits = "0123456789"
	fromA, fromB = strings.TrimRight(fromA, digits), strings.TrimRight(fromB, digits)
	return fromA == fromB && strings.HasSuffix(fromA, ":")
}

// again adds an equal attempt to the line.
func (l *line) again(rec record) {
	l.last, l.duration = rec.start, rec.duration
	if l.count < math.MaxUint32 {
		l.count++
	}
	l.tell(rec)
}

// newest returns a line of the last attempt alone.
func (l *line) newest() *line {
	n := *l
	n.first, n.count = n.last, 1
	return &n
}

func (l *line) attempt() Attempt {
	told := l.told()
	return Attempt{
		Start:    time.Unix(0, l.first),
		Last:     time.Unix(0, l.last),
		Count:    uint64(l.count),
		Duration: l.duration,
		Outcome:  l.outcome,
		Warning:  l.warning,
		Reason:   l.reason.Value(),
		Output:   l.output,
		Body:     told.body,
		ExitCode: told.exitCode,
		Address:  told.address,
	}
}

func attemptsOf(lines []line) []Attempt {
	all := make([]Attempt, len(lines))
	for i := range lines {
		all[i] = lines[i].attempt()
	}
	return all
}

// push appends x and drops the oldest beyond historySize. The capacity grows with the
// length, up to exactly historySize.
func push[T any](s []T, x T) []T {
	n := len(s)
	if n == historySize {
		copy(s, s[1:])
		s[n-1] = x
		return s
	}
	if n == cap(s) {
		s = append(make([]T, 0, min(max(1, 2*n), historySize)), s...)
	}
	return append(s, x)
}

// history holds the last attempts of a probe, oldest first.
type history struct {
	marks     []mark
	successes []line
	failures  *failures // nil until an attempt does not succeed: most probes never fail
}

// failures holds the attempts that did not succeed.
type failures struct {
	lines  []line
	streak uint64        // failed attempts since the last success
	first  *line         // the first attempt of the streak
	reason action.Reason // of the last attempt of the streak
	unable action.Reason // of the last attempt, if it could not be made
}

// attempts returns the lines as attempts.
func (f *failures) attempts() []Attempt {
	if f == nil {
		return []Attempt{}
	}
	return attemptsOf(f.lines)
}

// fail makes the newest attempt part of the streak.
func (f *failures) fail(reason action.Reason) {
	if f.streak++; f.streak == 1 {
		f.first = f.lines[len(f.lines)-1].newest()
	}
	f.reason, f.unable = reason, ""
}

// forget ends the streak.
func (f *failures) forget() {
	if f != nil {
		f.streak, f.first, f.reason, f.unable = 0, nil, "", ""
	}
}

func (h *history) add(rec record) {
	// A line grows only if no attempt of the other kind came between.
	inRow := len(h.marks) > 0 && (h.marks[len(h.marks)-1].outcome == Successful) == (rec.outcome == Successful)
	h.marks = push(h.marks, mark{rec.start, float32(rec.duration.Seconds()), rec.outcome, rec.warning})
	lines, most := &h.successes, maxSuccessOutput
	if rec.outcome != Successful {
		if h.failures == nil {
			h.failures = new(failures)
		}
		lines, most = &h.failures.lines, maxFailureOutput
	}
	rec.output, rec.body = output.Cut(rec.output, most), output.Cut(rec.body, maxBody)
	if n := len(*lines); inRow && n > 0 && (*lines)[n-1].same(rec) {
		(*lines)[n-1].again(rec)
		return
	}
	*lines = push(*lines, newLine(rec))
}

// last returns the last historySize lines of either kind.
func (h *history) last() []Attempt {
	all := append(attemptsOf(h.successes), h.failures.attempts()...)
	slices.SortStableFunc(all, func(a, b Attempt) int { return a.Start.Compare(b.Start) })
	return all[max(0, len(all)-historySize):]
}

// tell copies the history into a status.
func (h *history) tell(s *ProbeStatus) {
	s.Attempts, s.LastFailures = h.last(), h.failures.attempts()
	s.Marks = make([]Mark, len(h.marks))
	for i, m := range h.marks {
		took := time.Duration(float64(m.seconds) * float64(time.Second))
		s.Marks[i] = Mark{time.Unix(0, m.start), took, m.outcome, m.warning, h.reason(m)}
	}
	if n := len(h.successes); n > 0 {
		s.LastSuccess = new(h.successes[n-1].newest().attempt())
	}
	if f := h.failures; f != nil && f.first != nil {
		s.FirstFailure = new(f.first.attempt())
	}
}

// reason returns why a marked attempt failed. The line of each mark still exists.
func (h *history) reason(m mark) action.Reason {
	if m.outcome == Successful {
		return ""
	}
	for _, l := range slices.Backward(h.failures.lines) {
		if l.first <= m.start {
			return l.reason.Value()
		}
	}
	return ""
}

// clone returns a copy that shares nothing that changes.
func (h *history) clone() history {
	c := history{marks: slices.Clone(h.marks), successes: slices.Clone(h.successes)}
	if f := h.failures; f != nil {
		c.failures = &failures{lines: slices.Clone(f.lines), streak: f.streak, first: f.first, reason: f.reason}
	}
	return c
}

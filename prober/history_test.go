// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// told formats attempts as their outputs, each with a count and the times of the first and the
// last.
func told(all []Attempt) string {
	var s []string
	for _, a := range all {
		what := a.Output
		if a.Count > 1 {
			what = fmt.Sprintf("%s×%d[%d-%d]", what, a.Count, a.Start.UnixNano(), a.Last.UnixNano())
		}
		s = append(s, what)
	}
	return strings.Join(s, " ")
}

// The history remembers failures beside successes, and neither pushes the other out. The status
// shows the last 20 of both.
func TestHistory(t *testing.T) {
	var h history
	if got := h.last(); len(got) != 0 {
		t.Errorf("before the first attempt: %v", got)
	}
	n := int64(0)
	add := func(o AttemptOutcome, times int) {
		for range times {
			n++
			h.add(record{start: n, outcome: o, output: strconv.FormatInt(n, 10)})
		}
	}
	add(Failed, 2)
	add(Successful, 990)
	add(UnknownOutcome, 1)
	add(Successful, 10)
	if got, want := told(h.failures.attempts()), "1 2 993"; got != want {
		t.Errorf("failures %s, want %s", got, want)
	}
	if got, want := told(h.last()), "984 985 986 987 988 989 990 991 992 993 994 995 996 997 998 999 1000 1001 1002 1003"; got != want {
		t.Errorf("last attempts %s, want %s", got, want)
	}
	add(Failed, 30)
	if got := h.failures.attempts(); len(got) != historySize || got[0].Output != "1014" || got[19].Output != "1033" {
		t.Errorf("failures %s, want 1014 to 1033", told(got))
	}
	other := h.clone()
	add(Successful, 1)
	if got := other.last(); got[len(got)-1].Output != "1033" || len(other.marks) != historySize || other.marks[historySize-1].start != 1033 {
		t.Errorf("a copy changes with the original: %s", told(got))
	}
}

// Equal attempts in a row are one entry, whatever their bodies and local ports. A different
// attempt in between ends the entry.
func TestHistoryFolds(t *testing.T) {
	var h history
	n := int64(0)
	add := func(times int, rec record) {
		for range times {
			n++
			rec.start = n
			h.add(rec)
		}
	}
	ok := record{output: "ok"}
	bad := record{outcome: Failed, reason: action.HTTPStatus, output: "500", body: "first"}
	add(1000, ok)
	add(3, bad)
	bad.body = "last"
	add(1, bad)
	add(2, ok)
	add(1, record{output: "ok", warning: true})
	for port := range 5 {
		add(1, record{outcome: Failed, reason: action.ConnectionReset, output: fmt.Sprintf("read tcp 127.0.0.1:%d->127.0.0.1:80: reset", 40000+port)})
	}
	add(1, record{outcome: Failed, reason: action.Timeout, output: "late"})
	add(2, record{outcome: Failed, reason: action.ExitCode, output: "late", exitCode: 1})
	add(1, record{outcome: Failed, reason: action.ExitCode, output: "late", exitCode: 2})
	want := "ok×1000[1-1000] 500×4[1001-1004] ok×2[1005-1006] ok read tcp 127.0.0.1:40000->127.0.0.1:80: reset×5[1008-1012] late late×2[1014-1015] late"
	got := h.last()
	if told(got) != want {
		t.Errorf("got  %s\nwant %s", told(got), want)
	}
	if got[1].Body != "last" || got[7].ExitCode != 2 {
		t.Errorf("want the last body of each entry: %+v", got[1])
	}
	var status ProbeStatus
	h.tell(&status)
	var reasons string
	for _, m := range status.Marks[9:] {
		reasons += " " + string(m.Reason)
	}
	if want := "   connection_reset connection_reset connection_reset connection_reset connection_reset timeout exit_code exit_code exit_code"; reasons != want {
		t.Errorf("the attempts failed for %q, want %q", reasons, want)
	}
	if len(h.marks) != historySize || h.marks[historySize-1].start != n {
		t.Errorf("%d attempts are remembered one by one, want %d", len(h.marks), historySize)
	}
	for _, pair := range [][2]string{{"1->2", "3->2"}, {"a:1->2", "a:2->3"}, {"a:1->2", "b:1->2"}, {"a:1", "a:2"}, {"count: 1->", "count: 2->"}} {
		if sameOutput(pair[0], pair[1]) {
			t.Errorf("%q and %q count as the same", pair[0], pair[1])
		}
	}
}

// The first failure of a run and the success before it stay known, however long the run is and
// however much the outputs change. The end of the run ends both.
func TestHistoryFirstFailure(t *testing.T) {
	var h history
	n := int64(0)
	add := func(o AttemptOutcome, output string) {
		n++
		h.add(record{start: n, outcome: o, output: output, body: output})
		switch o {
		case Failed:
			h.failures.fail(action.Other)
		case Successful:
			h.failures.forget()
		case UnknownOutcome:
		}
	}
	tell := func() (first, success string) {
		var s ProbeStatus
		h.tell(&s)
		for _, of := range []struct {
			a    *Attempt
			said *string
		}{{s.FirstFailure, &first}, {s.LastSuccess, &success}} {
			if of.a != nil {
				*of.said = fmt.Sprintf("%s at %d, %d", of.a.Output, of.a.Start.UnixNano(), of.a.Count)
			}
		}
		return first, success
	}
	check := func(wantFirst, wantSuccess string) {
		t.Helper()
		if first, success := tell(); first != wantFirst || success != wantSuccess {
			t.Errorf("first failure %q, last success %q; want %q and %q", first, success, wantFirst, wantSuccess)
		}
	}
	check("", "")
	add(Failed, "boot")
	check("boot at 1, 1", "")
	for range 5 {
		add(Successful, "ok")
	}
	check("", "ok at 6, 1")
	add(UnknownOutcome, "no files")
	for i := range 100 {
		add(Failed, fmt.Sprint("fail ", i))
	}
	check("fail 0 at 8, 1", "ok at 6, 1")
	h = h.clone()
	check("fail 0 at 8, 1", "ok at 6, 1")
	h.failures.forget() // a new instance
	check("", "ok at 6, 1")
	add(Failed, "fail 99") // the entry goes on, but the run is new
	check("fail 99 at 108, 1", "ok at 6, 1")
	add(Failed, "fail 99")
	check("fail 99 at 108, 1", "ok at 6, 1")
	add(Successful, "ok")
	check("", "ok at 110, 1")
}

// Outputs are cut at the beginning of a character, and a repeated output costs nothing.
func TestHistoryOutput(t *testing.T) {
	var h history
	long := strings.Repeat("ü", 5000)
	h.add(record{outcome: Successful, output: long})
	h.add(record{outcome: Failed, output: long + "1", body: long})
	if got := h.successes[0].output; got != long[:maxSuccessOutput] {
		t.Errorf("a success remembers %d bytes, want %d", len(got), maxSuccessOutput)
	}
	if got := h.failures.lines[0]; got.output != long[:maxFailureOutput] || got.more.body != long[:maxBody] {
		t.Errorf("a failure remembers %d and %d bytes, want %d and %d", len(got.output), len(got.more.body), maxFailureOutput, maxBody)
	}
	for range historySize {
		h.add(record{outcome: Failed, output: long + "2", body: long})
	}
	if n := len(h.failures.lines); n != 1 {
		t.Errorf("%d entries of outputs that are equal up to the cut, want 1", n)
	}
	allocs := testing.AllocsPerRun(100, func() { h.add(record{outcome: Failed, output: long, body: long}) })
	if allocs != 0 {
		t.Errorf("a repeated output costs %v allocations, want 0", allocs)
	}
}

// Each native bucket's bound is 2^(i/8). A value on the bound is in the bucket, and the next
// larger value is not.
func TestNativeIndex(t *testing.T) {
	for _, schema := range []int32{0, 1, 2, 3} {
		for i := int32(-200); i <= 200; i++ {
			bound := math.Exp2(float64(i) / float64(int32(1)<<schema))
			if i%(1<<schema) == 0 { // these bounds are exact
				if got := nativeIndex(bound, schema); got != i {
					t.Errorf("schema %d: %g is in bucket %d, want %d", schema, bound, got, i)
				}
			}
			if got := nativeIndex(bound*1.0001, schema); got != i+1 {
				t.Errorf("schema %d: a bit above %g is in bucket %d, want %d", schema, bound, got, i+1)
			}
		}
	}
}

// Whatever the observations, both halves count all of them, the native half has at most 100
// buckets, and its buckets are sorted and not empty.
func TestHistogram(t *testing.T) {
	var s sparse
	sum := 0.0
	for i := range 20000 {
		d := time.Duration(rand.Int64() >> rand.IntN(63))
		if i < 1000 {
			d = time.Duration(rand.Int64N(int64(time.Second)))
		}
		s.observe(d)
		sum += d.Seconds()
		if i == 999 && s.schema() != maxSchema {
			t.Errorf("schema %d within a second's range, want %d", s.schema(), maxSchema)
		}
		if n := s.natives(); n > maxNative {
			t.Fatalf("%d native buckets, want %d at most", n, maxNative)
		}
	}
	s.observe(0)
	s.observe(-time.Second)
	s.observe(math.MaxInt64)
	sum += time.Duration(math.MaxInt64).Seconds()
	h := s.histogram()
	classic, native := uint64(0), h.Zero
	for _, n := range h.Classic {
		classic += n
	}
	for _, b := range h.Native {
		if b.Count == 0 {
			t.Errorf("bucket %d is empty", b.Index)
		}
		native += b.Count
	}
	if !slices.IsSortedFunc(h.Native, func(a, b NativeBucket) int { return int(a.Index - b.Index) }) {
		t.Error("buckets are not sorted")
	}
	if h.Count != 20003 || classic != h.Count || native != h.Count || h.Zero < 2 || h.Schema < 0 || math.Abs(h.Sum-sum) > sum*1e-9 {
		t.Errorf("count %d, classic %d, native %d, zero %d, schema %d, sum %g; want 20003 of each, sum %g", h.Count, classic, native, h.Zero, h.Schema, h.Sum, sum)
	}
}

// A classic bucket includes its bound.
func TestClassicBounds(t *testing.T) {
	var s sparse
	for _, b := range ClassicBounds() {
		s.observe(time.Duration(b * 1e9))
	}
	s.observe(time.Minute)
	for i, n := range s.histogram().Classic {
		if n != 1 {
			t.Errorf("bucket %d holds %d, want 1", i, n)
		}
	}
}

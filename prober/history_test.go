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
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Of 1,000 successes and 3 failures between them, the last 20 attempts and all 3
// failures are remembered; of 30 failures, the last 20.
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
	outputs := func(all []Attempt) string {
		var s []string
		for _, a := range all {
			s = append(s, a.Output)
		}
		return strings.Join(s, " ")
	}
	add(Failed, 2)
	add(Successful, 990)
	add(UnknownOutcome, 1)
	add(Successful, 10)
	if got, want := outputs(h.failures.attempts()), "1 2 993"; got != want {
		t.Errorf("failures %s, want %s", got, want)
	}
	if got, want := outputs(h.last()), "984 985 986 987 988 989 990 991 992 993 994 995 996 997 998 999 1000 1001 1002 1003"; got != want {
		t.Errorf("last attempts %s, want %s", got, want)
	}
	add(Failed, 30)
	if got := h.failures.attempts(); len(got) != historySize || got[0].Output != "1014" || got[19].Output != "1033" {
		t.Errorf("failures %s, want 1014 to 1033", outputs(got))
	}
	other := h.clone()
	add(Successful, 1)
	if got := other.last(); got[len(got)-1].Output != "1033" {
		t.Errorf("a copy goes on with the original: %s", outputs(got))
	}
}

// Outputs are cut between characters, and an output that repeats is stored once.
func TestHistoryOutput(t *testing.T) {
	var h history
	long := strings.Repeat("ü", 5000)
	h.add(record{outcome: Successful, output: long})
	h.add(record{outcome: Failed, output: long + "1"})
	h.add(record{outcome: Failed, output: long + "2"})
	if got := h.successes.records[0].output; got != long[:maxSuccessOutput] {
		t.Errorf("a success remembers %d bytes, want %d", len(got), maxSuccessOutput)
	}
	if got := h.failures.records[0].output; got != long[:maxFailureOutput] {
		t.Errorf("a failure remembers %d bytes, want %d", len(got), maxFailureOutput)
	}
	for limit, want := range map[int]string{0: "", 1: "a", 2: "a", 3: "aü", 4: "aüb", 9: "aüb"} {
		if got := cut("aüb", limit); got != want {
			t.Errorf("cut at %d: %q, want %q", limit, got, want)
		}
	}
	allocs := testing.AllocsPerRun(100, func() { h.failures.intern(long[:maxFailureOutput]) })
	if allocs != 0 {
		t.Errorf("a repeated output costs %v allocations, want 0", allocs)
	}
}

// Each native bucket's bound is 2^(i/8): a value on the bound is in it, the next
// larger one is not.
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

// Whatever is observed, both halves count all of it, the native half stays within
// 100 buckets, and its buckets are sorted and not empty.
func TestHistogram(t *testing.T) {
	var h Histogram
	sum := 0.0
	for range 20000 {
		d := time.Duration(rand.Int64() >> rand.IntN(63))
		if h.Count < 1000 {
			d = time.Duration(rand.Int64N(int64(time.Second)))
		}
		h.Observe(d)
		sum += d.Seconds()
		if h.Count == 1000 && h.Schema != maxSchema {
			t.Errorf("schema %d within a second's range, want %d", h.Schema, maxSchema)
		}
		if len(h.Native) > maxNative {
			t.Fatalf("%d native buckets, want %d at most", len(h.Native), maxNative)
		}
	}
	h.Observe(0)
	h.Observe(-time.Second)
	h.Observe(math.MaxInt64)
	sum += time.Duration(math.MaxInt64).Seconds()
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

// A bound of a classic bucket is part of it.
func TestClassicBounds(t *testing.T) {
	var h Histogram
	for _, b := range ClassicBounds() {
		h.Observe(time.Duration(b * 1e9))
	}
	h.Observe(time.Minute)
	for i, n := range h.Classic {
		if n != 1 {
			t.Errorf("bucket %d holds %d, want 1", i, n)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prober-exporter/prober_exporter/prober/action"
)

// plainly counts durations bucket by bucket, at the best resolution with few enough native
// buckets.
func plainly(durations []time.Duration) Histogram {
	h := Histogram{Count: uint64(len(durations)), Classic: make([]uint64, len(classicBounds)+1)}
	for _, d := range durations {
		v := max(d, 0).Seconds()
		h.Sum += v
		if v == 0 {
			h.Zero++
		}
		i := 0
		for i < len(classicBounds) && v > classicBounds[i] {
			i++
		}
		h.Classic[i]++
	}
	for h.Schema = maxSchema; ; h.Schema-- {
		counts := map[int32]uint64{}
		for _, d := range durations {
			if d > 0 {
				counts[nativeIndex(d.Seconds(), h.Schema)]++
			}
		}
		if len(counts) > maxNative {
			continue
		}
		for _, index := range slices.Sorted(maps.Keys(counts)) {
			h.Native = append(h.Native, NativeBucket{Index: index, Count: counts[index]})
		}
		return h
	}
}

// Whatever the observations, the histogram equals a fresh count of all durations, after each of
// the first hundred and then after every hundredth of 3,000. The observations cover bounds,
// zero and a halved resolution.
func TestSparseCountsPlainly(t *testing.T) {
	var narrow, wide []time.Duration
	for _, b := range ClassicBounds() {
		d := time.Duration(b * 1e9)
		narrow = append(narrow, d-1, d, d+1)
	}
	for range 3000 {
		narrow = append(narrow, time.Duration(rand.Int64N(int64(5*time.Millisecond))))
		wide = append(wide, time.Duration(rand.Int64()>>rand.IntN(63)))
	}
	wide = append(wide, 0, -1, math.MaxInt64, 1)
	for name, durations := range map[string][]time.Duration{"narrow": narrow, "wide": wide, "zero first": {0, 0, time.Millisecond}} {
		var s sparse
		for i, d := range durations {
			s.observe(d)
			if i%100 != 0 && i > 100 && i != len(durations)-1 {
				continue
			}
			if got, want := s.histogram(), plainly(durations[:i+1]); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, after %d: got %+v, want %+v", name, i+1, got, want)
			}
		}
		if name == "wide" && s.schema() == maxSchema {
			t.Error("the resolution was never halved")
		}
	}
}

// A copy of a histogram does not change with the original.
func TestSparseClone(t *testing.T) {
	var s sparse
	s.observe(time.Millisecond)
	c := s.clone()
	s.observe(time.Millisecond)
	if got := c.histogram(); got.Count != 1 || got.Sum != 0.001 {
		t.Errorf("got %+v, want 1 of a millisecond", got)
	}
}

// A probe whose attempts take equally long and say the same keeps 96 bytes of histogram and
// history after the first attempt, and at most 400 bytes for ever: full slices have no room to
// spare. The probe also needs a worker and a share of its target.
func TestRoomOfAProbe(t *testing.T) {
	var c counts
	var h history
	room := func() uintptr {
		return uintptr(cap(c.successful.cells))*unsafe.Sizeof(cell{}) + uintptr(cap(h.marks))*unsafe.Sizeof(mark{}) +
			uintptr(cap(h.successes))*unsafe.Sizeof(line{})
	}
	add := func() {
		c.count(Successful, "", time.Millisecond)
		h.add(record{duration: time.Millisecond, output: "ok", outcome: Successful})
	}
	if add(); room() > 96 {
		t.Errorf("%d bytes after the first attempt, want 96 at most", room())
	}
	for range 1000 {
		add()
	}
	if room() > 400 || cap(h.marks) != historySize {
		t.Errorf("%d bytes, %d marks of room, want 400 and %d at most", room(), cap(h.marks), historySize)
	}
	if h.failures != nil || c.others != nil {
		t.Error("a probe that never failed has room for failures")
	}
	// All three are size classes of the allocator.
	if w, t0 := unsafe.Sizeof(worker{}), unsafe.Sizeof(target{}); w > 224 || t0 > 576 {
		t.Errorf("a worker has %d bytes and a target %d, want 224 and 576 at most", w, t0)
	}
	if o := unsafe.Sizeof(others{}); o > 208 {
		t.Errorf("a probe that has failed or was slow has %d bytes more, want 208 at most", o)
	}
}

// The history returns a record unchanged.
func TestRecordComesBack(t *testing.T) {
	var h history
	at := time.Now()
	h.add(record{
		start: at.UnixNano(), duration: time.Second, reason: action.ExitCode, output: strings.Repeat("x", 9), outcome: Failed,
		body: "body", address: "http://h/", exitCode: 3,
	})
	h.add(record{start: at.UnixNano() + 1, warning: true})
	first, second := time.Unix(0, at.UnixNano()), time.Unix(0, at.UnixNano()+1)
	want := []Attempt{
		{
			Start: first, Last: first, Count: 1, Duration: time.Second, Outcome: Failed, Reason: action.ExitCode, Output: "xxxxxxxxx",
			Body: "body", Address: "http://h/", ExitCode: 3,
		},
		{Start: second, Last: second, Count: 1, Outcome: Successful, Warning: true},
	}
	if got := h.last(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

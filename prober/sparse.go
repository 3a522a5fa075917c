// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// sparse counts durations, or the lengths of runs, in little memory: most probes have a handful of
// cells, from which both the classic and the native half of a Histogram follow. The zero value is empty and
// ready for use. A sparse is not safe for concurrent use.
type sparse struct {
	sum    float64 // of durations: seconds
	cells  []cell  // sorted, none empty
	coarse uint8   // how often the resolution was halved
}

// cell counts the durations that share both a native and a classic bucket.
type cell struct {
	native  int16
	classic uint8
	count   uint64
}

// zeroBucket is the native index of the zero bucket, far from that of any duration.
const zeroBucket = math.MinInt16

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.native, b.native), cmp.Compare(a.classic, b.classic))
}

// count returns the number of durations.
func (s *sparse) count() (n uint64) {
	for i := range s.cells {
		n += s.cells[i].count
	}
	return n
}

func (s *sparse) schema() int32 { return maxSchema - int32(s.coarse) }

// observe adds a duration. A negative one counts as 0.
func (s *sparse) observe(d time.Duration) { s.add(max(d, 0).Seconds(), classicBounds[:]) }

// add adds a value that is not negative. The bounds are those of the classic buckets.
func (s *sparse) add(v float64, bounds []float64) {
	s.sum += v
	c := cell{native: zeroBucket, classic: uint8(sort.SearchFloat64s(bounds, v))}
	if v > 0 {
		c.native = int16(nativeIndex(v, s.schema()))
	}
	i, found := slices.BinarySearchFunc(s.cells, c, compareCells)
	if !found {
		s.cells = slices.Insert(s.cells, i, c)
	}
	s.cells[i].count++
	for len(s.cells) > maxNative && s.natives() > maxNative {
		s.halve()
	}
}

// natives returns the number of native buckets without the zero bucket.
func (s *sparse) natives() (n int) {
	for i, c := range s.cells {
		if c.native != zeroBucket && (i == 0 || s.cells[i-1].native != c.native) {
			n++
		}
	}
	return n
}

// halve merges each pair of neighbouring native buckets. All possible durations span 63
// powers of two, so the schema never falls below 0.
func (s *sparse) halve() {
	s.coarse++
	merged := s.cells[:0]
	for _, c := range s.cells {
		if c.native != zeroBucket {
			c.native = (c.native + 1) >> 1 // a shift rounds down for negative numbers too
		}
		if n := len(merged); n > 0 && compareCells(merged[n-1], c) == 0 {
			merged[n-1].count += c.count
			continue
		}
		merged = append(merged, c)
	}
	s.cells = merged
}

// HistogramOf returns a histogram of the durations.
func HistogramOf(durations ...time.Duration) Histogram {
	var s sparse
	for _, d := range durations {
		s.observe(d)
	}
	return s.histogram()
}

// histogram returns the durations as a Histogram that shares no state with s.
func (s *sparse) histogram() Histogram { return s.counted(classicBounds[:]) }

// counted returns a Histogram that shares no state with s. The bounds are those of add.
func (s *sparse) counted(bounds []float64) Histogram {
	if len(s.cells) == 0 {
		return Histogram{}
	}
	h := Histogram{Sum: s.sum, Classic: make([]uint64, len(bounds)+1), Schema: s.schema()}
	if n := s.natives(); n > 0 {
		h.Native = make([]NativeBucket, 0, n)
	}
	for _, c := range s.cells {
		h.Count += c.count
		h.Classic[c.classic] += c.count
		n := len(h.Native)
		switch {
		case c.native == zeroBucket:
			h.Zero += c.count
		case n > 0 && h.Native[n-1].Index == int32(c.native):
			h.Native[n-1].Count += c.count
		default:
			h.Native = append(h.Native, NativeBucket{Index: int32(c.native), Count: c.count})
		}
	}
	return h
}

// clone returns a copy that shares no state.
func (s *sparse) clone() sparse {
	c := *s
	c.cells = slices.Clone(s.cells)
	return c
}

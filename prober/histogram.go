// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"math"
	"slices"
	"sort"
)

// classicBounds are the upper bounds, in seconds, of a histogram's classic
// buckets: three a decade from 0.5 ms to 10 s.
var classicBounds = [...]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// ClassicBounds returns the upper bounds of the classic buckets, in seconds, without the
// +Inf bucket.
func ClassicBounds() []float64 { return slices.Clone(classicBounds[:]) }

const (
	// maxSchema is the resolution of a new histogram: eight native buckets for each power
	// of two, each 9 % wide.
	maxSchema = 3
	// maxNative is how many native buckets a histogram may have; with more, the histogram
	// halves its resolution.
	maxNative = 100
)

// NativeZeroThreshold is the width of the native zero bucket, in seconds: 2^-128,
// client_golang's default.
const NativeZeroThreshold = 0x1p-128

// Histogram is a copy of counted durations, or of lengths of runs: a classic and a native
// histogram in one. The zero value is empty.
type Histogram struct {
	Count uint64
	Sum   float64 // of durations: seconds
	// Classic has the count of each classic bucket, not cumulative; nil while empty.
	Classic []uint64
	// Schema is the resolution of Native: 2^Schema buckets for each power of two.
	Schema int32
	// Zero counts the observations in the native zero bucket.
	Zero uint64
	// Native has the other native buckets that are not empty, sorted by Index.
	Native []NativeBucket
}

// NativeBucket is a native bucket with the upper bound 2^(Index / 2^Schema).
type NativeBucket struct {
	Index int32
	Count uint64
}

// nativeIndex returns the index of the native bucket that holds v > 0: the least i with
// v <= 2^(i / 2^schema). nativeIndex compares v with the bounds, because a logarithm may
// put a value that lies on a bound on either side.
func nativeIndex(v float64, schema int32) int32 {
	frac, exp := math.Frexp(v) // v = frac · 2^exp, frac in [0.5, 1)
	perOctave := 1 << schema
	within := sort.Search(perOctave, func(i int) bool {
		return frac <= math.Exp2(float64(i)/float64(perOctave))/2
	})
	return int32(within + (exp-1)*perOctave)
}

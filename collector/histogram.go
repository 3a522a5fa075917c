// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/prober-exporter/prober_exporter/prober"
)

// Histograms is the form in which histograms are exposed.
type Histograms uint8

// The forms of histograms.
const (
	// ClassicAndNative histograms have both kinds of buckets. A scraper takes the half
	// that it understands.
	ClassicAndNative Histograms = iota
	// NativeOnly histograms have no classic buckets. As text they have only the sum, the
	// count, and the bucket +Inf, which the formats require.
	NativeOnly
)

var durationBounds, runBounds = prober.ClassicBounds(), prober.RunBounds()

// bounds returns the bounds of the classic buckets of a metric without +Inf; nil if it has none.
func (h Histograms) bounds(m id) []float64 {
	switch {
	case h == NativeOnly:
		return nil
	case m == probeRunLength:
		return runBounds
	default:
		return durationBounds
	}
}

// histogram is a const histogram that is classic and native in one, or native alone,
// which client_golang does not have.
type histogram struct {
	metric
	bounds []float64
	counts *prober.Histogram
}

// Write fills in both halves, as client_golang's own histogram does.
func (h *histogram) Write(out *dto.Metric) error {
	spans, deltas := nativeBuckets(h.counts.Native)
	out.Label = h.labels
	out.Histogram = &dto.Histogram{
		SampleCount:   &h.counts.Count,
		SampleSum:     &h.counts.Sum,
		Bucket:        classicBuckets(h.bounds, h.counts.Classic),
		Schema:        &h.counts.Schema,
		ZeroThreshold: new(prober.NativeZeroThreshold),
		ZeroCount:     &h.counts.Zero,
		PositiveSpan:  spans,
		PositiveDelta: deltas,
	}
	return nil
}

// classicBuckets cumulates the counts of the buckets with a finite bound. The count of
// the bucket above them is the sample count. Missing counts are zeros.
func classicBuckets(bounds []float64, counts []uint64) []*dto.Bucket {
	var (
		// One allocation each instead of one per bucket: a large scrape has a
		// hundred thousand histograms.
		buckets   = make([]dto.Bucket, len(bounds))
		cumulated = make([]uint64, len(bounds))
		out       = make([]*dto.Bucket, len(bounds))
		sum       uint64
	)
	for i := range bounds {
		if i < len(counts) {
			sum += counts[i]
		}
		cumulated[i] = sum
		buckets[i].CumulativeCount, buckets[i].UpperBound = &cumulated[i], &bounds[i]
		out[i] = &buckets[i]
	}
	return out
}

// maxGap is how many empty buckets in a row are written out: so many zeros are still
// shorter than the beginning of a new span.
const maxGap = 2

// nativeBuckets encodes native buckets as spans of consecutive buckets. The offset of a
// span is its distance from the end of the previous span. Each bucket is encoded as the
// difference between its count and the count of the previous bucket.
func nativeBuckets(buckets []prober.NativeBucket) (spans []*dto.BucketSpan, deltas []int64) {
	var (
		next     int32 // the index after the last bucket written
		previous int64 // the count of that bucket
	)
	for i, b := range buckets {
		gap := b.Index - next
		if i == 0 || gap > maxGap {
			spans = append(spans, &dto.BucketSpan{Offset: new(gap), Length: new(uint32)})
			gap = 0
		}
		for range gap {
			deltas = append(deltas, -previous)
			previous = 0
		}
		count := int64(b.Count)
		deltas = append(deltas, count-previous)
		*spans[len(spans)-1].Length += uint32(gap) + 1
		next, previous = b.Index+1, count
	}
	return spans, deltas
}

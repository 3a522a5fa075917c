// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

func written(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram()
}

func ours(t *testing.T, h prober.Histogram, as Histograms) *dto.Histogram {
	t.Helper()
	return written(t, &histogram{metric{}, as.bounds(probeDuration), &h})
}

// theirs returns client_golang's own histogram with the same buckets.
func theirs(t *testing.T, durations []time.Duration, as Histograms) *dto.Histogram {
	t.Helper()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:                           "h",
		Buckets:                        as.bounds(probeDuration),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 100,
	})
	for _, d := range durations {
		h.Observe(d.Seconds())
	}
	out := written(t, h)
	out.CreatedTimestamp = nil
	return out
}

// The agent's histogram equals client_golang's, message for message: when empty, with zeros,
// with values on the bounds of classic and native buckets and between them, and with gaps of
// one, two, three and many buckets.
func TestHistogramEqualsClientGolang(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	logarithmic := make([]time.Duration, 1000)
	for i := range logarithmic {
		logarithmic[i] = time.Duration(1e6 * (1 + 50*random.ExpFloat64()))
	}
	tests := map[string][]time.Duration{
		"zero":           {0, 0, 0},
		"one":            {time.Millisecond},
		"equal":          {time.Second, time.Second, time.Second},
		"powers of two":  {time.Second / 4, time.Second / 2, time.Second, 2 * time.Second, 4 * time.Second},
		"small gaps":     {1000, 1100, 1200, 1300, 1400, 1600, 1800, 2300, 3300, 5000},
		"large gaps":     {1, time.Microsecond, time.Millisecond, time.Second, time.Minute},
		"zero and more":  {0, time.Millisecond, 0, time.Second},
		"above the last": {11 * time.Second, time.Hour},
		"random":         logarithmic,
	}
	for _, b := range prober.ClassicBounds() {
		d := time.Duration(b * 1e9)
		tests["classic bounds"] = append(tests["classic bounds"], d-1, d, d+1)
	}
	for name, durations := range tests {
		for _, as := range []Histograms{ClassicAndNative, NativeOnly} {
			got, want := ours(t, prober.HistogramOf(durations...), as), theirs(t, durations, as)
			if !proto.Equal(got, want) {
				t.Errorf("%s, %d:\ngot  %v\nwant %v", name, as, got, want)
			}
		}
	}
}

// The lengths of runs make the same histogram as with client_golang, message for message.
func TestRunLengthsEqualClientGolang(t *testing.T) {
	for _, lengths := range [][]float64{{1}, {1, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 21, 22, 1e6}} {
		for _, as := range []Histograms{ClassicAndNative, NativeOnly} {
			theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: "h", Buckets: as.bounds(probeRunLength), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
			})
			for _, n := range lengths {
				theirs.Observe(n)
			}
			want := written(t, theirs)
			want.CreatedTimestamp = nil
			got := written(t, &histogram{metric{}, as.bounds(probeRunLength), &prober.FailureRunsOf(lengths...).Lengths})
			if !proto.Equal(got, want) {
				t.Errorf("%v, %d:\ngot  %v\nwant %v", lengths, as, got, want)
			}
		}
	}
}

// An empty histogram has all classic buckets at 0, if any, and is native too, so that a
// scraper knows both from the beginning.
func TestEmptyHistogram(t *testing.T) {
	for _, as := range []Histograms{ClassicAndNative, NativeOnly} {
		got, want := ours(t, prober.Histogram{}, as), theirs(t, nil, as)
		want.Schema = new(int32(0)) // the agent's has not chosen a resolution yet
		if !proto.Equal(got, want) {
			t.Errorf("%d:\ngot  %v\nwant %v", as, got, want)
		}
	}
}

// At half the resolution the buckets are twice as wide: 2 in (2^-0.25, 1], 3 in (1,
// 2^0.25], none in the next, 1 in (2^0.5, 2^0.75]; six further on 1 in (2^2.25,
// 2^2.5].
func TestHalvedResolution(t *testing.T) {
	h := prober.Histogram{
		Count: 7, Sum: 12.5, Schema: 2,
		Classic: []uint64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 0, 1, 0},
		Native:  []prober.NativeBucket{{Index: 0, Count: 2}, {Index: 1, Count: 3}, {Index: 3, Count: 1}, {Index: 10, Count: 1}},
	}
	got := ours(t, h, ClassicAndNative)
	want := &dto.Histogram{
		SampleCount:   new(uint64(7)),
		SampleSum:     new(12.5),
		Schema:        new(int32(2)),
		ZeroThreshold: new(0x1p-128),
		ZeroCount:     new(uint64(0)),
		PositiveSpan: []*dto.BucketSpan{
			{Offset: new(int32(0)), Length: new(uint32(4))},
			{Offset: new(int32(6)), Length: new(uint32(1))},
		},
		PositiveDelta: []int64{2, 1, -3, 1, 0},
	}
	cumulated := []uint64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 6, 6, 7}
	for i, b := range prober.ClassicBounds() {
		want.Bucket = append(want.Bucket, &dto.Bucket{CumulativeCount: new(cumulated[i]), UpperBound: new(b)})
	}
	if !proto.Equal(got, want) {
		t.Errorf("\ngot  %v\nwant %v", got, want)
	}
}

// A histogram that had to halve its resolution itself still encodes every observation.
func TestHalvedByItself(t *testing.T) {
	var durations []time.Duration
	for d := 100.0; d < 1e12; d *= 1.05 {
		durations = append(durations, time.Duration(d))
	}
	h := ours(t, prober.HistogramOf(durations...), ClassicAndNative)
	if h.GetSchema() >= 3 {
		t.Errorf("schema %d, want less than 3", h.GetSchema())
	}
	var sum, count int64
	for _, d := range h.GetPositiveDelta() {
		count += d
		sum += count
	}
	var length uint32
	for _, s := range h.GetPositiveSpan() {
		length += s.GetLength()
	}
	if sum != int64(len(durations)) || int(length) != len(h.GetPositiveDelta()) {
		t.Errorf("%d observations in %d buckets, want %d in %d", sum, len(h.GetPositiveDelta()), len(durations), length)
	}
}

// large returns a status of n targets with three probes each. All probes have run and failed.
func large(n int) prober.Status {
	status := prober.Status{Summary: prober.Summary{Loaded: true, Targets: n}, Statuses: make([]prober.TargetStatus, n)}
	for i := range status.Statuses {
		t := &status.Statuses[i]
		t.Name = fmt.Sprintf("target-%d", i)
		t.Labels = []config.Label{{Name: "team", Value: "payments"}}
		for _, k := range gate.Kinds() {
			t.Probes = append(t.Probes, prober.ProbeStatus{
				Kind: k, Successful: 10, Failed: 1, LastRun: at(1700000000),
				Failures: []prober.ReasonCount{{Reason: action.Timeout, Count: 1}},
				Durations: prober.Durations{
					Successful: prober.HistogramOf(time.Millisecond, 2*time.Millisecond, 3*time.Millisecond),
					Failed:     prober.HistogramOf(time.Second),
				},
			})
		}
	}
	return status
}

func BenchmarkCollect(b *testing.B) {
	c := New(fixed{b, large(10_000)}, nil, ClassicAndNative)
	for b.Loop() {
		ch := make(chan prometheus.Metric, 1000)
		go func() {
			defer close(ch)
			c.Collect(ch)
		}()
		for range ch {
			continue
		}
	}
}

func BenchmarkGather(b *testing.B) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(New(fixed{b, large(10_000)}, nil, ClassicAndNative))
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

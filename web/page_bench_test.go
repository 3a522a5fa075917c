// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// busy is a prober whose probes remember as much as they can. Like the real prober, busy
// returns copies.
type busy struct {
	fake
	at map[string]int
}

func newBusy(n int) *busy {
	b := &busy{fake: fake{statuses: many(n, well)}, at: make(map[string]int, n)}
	for i := range b.statuses {
		t := &b.statuses[i]
		b.at[t.Name] = i
		if i%50 == 0 {
			*t = unready(t.Name)
		}
		for j := range t.Probes {
			p := &t.Probes[j]
			for k := range 20 {
				p.Marks = append(p.Marks, prober.Mark{Start: time.Unix(int64(k), 0), Duration: time.Millisecond})
				p.Attempts = append(p.Attempts, prober.Attempt{Start: time.Unix(int64(k), 0), Last: time.Unix(int64(k), 0), Count: 1, Duration: time.Millisecond})
			}
			if i%50 == 0 {
				p.LastFailures = []prober.Attempt{{Outcome: prober.Failed, Reason: action.HTTPStatus, Output: "HTTP probe failed with statuscode: 503"}}
			}
		}
	}
	return b
}

func (b *busy) Status(prober.Detail) prober.Status {
	s := prober.Status{Summary: b.Summary(), Statuses: slices.Clone(b.statuses)}
	for i := range s.Statuses {
		s.Statuses[i].Probes = slices.Clone(s.Statuses[i].Probes)
	}
	return s
}

func (b *busy) Target(name string, _ prober.Detail) (prober.TargetStatus, bool) {
	i, ok := b.at[name]
	if !ok {
		return prober.TargetStatus{}, false
	}
	return b.statuses[i], true
}

// BenchmarkPage measures one view of the page: its costs and its size.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{3, 10, 1000, 10000} {
		for _, how := range []string{"identity", "gzip"} {
			b.Run(fmt.Sprintf("%d/%s", n, how), func(b *testing.B) {
				h := newServer(b, options(newBusy(n))).Handler()
				b.ReportAllocs()
				size := 0
				for b.Loop() {
					size = get(h, "/", "Accept-Encoding: "+how).Body.Len()
				}
				b.ReportMetric(float64(size), "B/page")
			})
		}
	}
	b.Run("target", func(b *testing.B) {
		h := newServer(b, options(newBusy(10))).Handler()
		b.ReportAllocs()
		size := 0
		for b.Loop() {
			size = get(h, "/targets/t0").Body.Len()
		}
		b.ReportMetric(float64(size), "B/page")
	})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

// promtool's linter accepts all metrics.
func TestLint(t *testing.T) {
	reg := prometheus.NewRegistry()
	var reload Reload
	reload.SetResult(true, at(1700000000))
	reg.MustRegister(New(fixed{t, rich()}, richActs(), ClassicAndNative), &reload, NewUnknownTargets("live"), versioncollector.NewCollector("prober_exporter"))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n, err := testutil.GatherAndCount(reg, "prober_exporter_build_info"); n != 1 || err != nil {
		t.Errorf("prober_exporter_build_info: %d series, error %v", n, err)
	}
}

// checked makes a collector a checked collector, so that a pedantic registry compares every
// metric with its descriptor.
type checked struct{ prometheus.Collector }

func (c checked) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c.Collector, ch) }

// This test checks what a registry does not check for an unchecked collector. Every metric has
// exactly the labels of its descriptor, the descriptors of a name agree, and no series appears
// twice.
func TestDescriptors(t *testing.T) {
	all := rich()
	for i := range all.Statuses {
		status := all
		status.Statuses = all.Statuses[i : i+1] // one set of labels: a registry takes no more
		gather(t, checked{New(fixed{t, status}, actsOf(status), ClassicAndNative)})
	}
}

// Every row of the table appears once in a rich status, with its name, its help, and the
// agent's labels before the target's own labels.
func TestTable(t *testing.T) {
	families := gather(t, New(fixed{t, rich()}, richActs(), ClassicAndNative))
	help := map[string]string{}
	for _, mf := range families {
		help[mf.GetName()] = mf.GetHelp()
		for _, m := range mf.GetMetric() {
			checkLabels(t, mf, m)
		}
	}
	for m, row := range table {
		if row.help == "" || help[row.name] != row.help {
			t.Errorf("row %d: %q: help is %q, want %q", m, row.name, help[row.name], row.help)
		}
	}
	if len(families) != int(numMetrics) {
		t.Errorf("%d families, %d rows", len(families), numMetrics)
	}
}

func checkLabels(t *testing.T, mf *dto.MetricFamily, m *dto.Metric) {
	t.Helper()
	names := make([]string, len(m.GetLabel()))
	for i, l := range m.GetLabel() {
		names[i] = l.GetName()
		if !utf8.ValidString(l.GetValue()) || l.GetName() == "" || strings.HasPrefix(l.GetName(), "__") {
			t.Errorf("%s: label %s=%q", mf.GetName(), l.GetName(), l.GetValue())
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%s: labels %v are not sorted or not unique", mf.GetName(), names)
	}
	if of := strings.HasPrefix(mf.GetName(), "prober_exporter_"); of == slices.Contains(names, "target") {
		t.Errorf("%s: labels %v", mf.GetName(), names)
	}
}

// scrapeHTTP gets the metrics over HTTP in the format accept.
func scrapeHTTP(t *testing.T, c prometheus.Collector, accept string) []*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	dec := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Result().Header))
	var families []*dto.MetricFamily
	for {
		var mf dto.MetricFamily
		err := dec.Decode(&mf)
		if errors.Is(err, io.EOF) {
			return families
		}
		if err != nil {
			t.Fatal(err)
		}
		families = append(families, &mf)
	}
}

const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// Without classic buckets, a scraper of protobuf gets the native half of a histogram, and a
// scraper of text gets the count and the sum.
func TestNativeOnly(t *testing.T) {
	for accept, native := range map[string]bool{protobuf: true, "text/plain;version=0.0.4": false} {
		seen := 0
		for _, mf := range scrapeHTTP(t, New(fixed{t, rich()}, richActs(), NativeOnly), accept) {
			for _, m := range mf.GetMetric() {
				h := m.GetHistogram()
				if h == nil {
					continue
				}
				seen++
				buckets := h.GetBucket()
				if native && len(buckets) != 0 || !native && (len(buckets) != 1 || !math.IsInf(buckets[0].GetUpperBound(), 1)) {
					t.Errorf("%s: %s has classic buckets %v", accept, mf.GetName(), buckets)
				}
				if h.GetSampleCount() == 0 || h.GetSampleSum() == 0 || native != (len(h.GetPositiveSpan()) > 0) {
					t.Errorf("%s: %s is %v", accept, mf.GetName(), h)
				}
			}
		}
		if seen != 7 {
			t.Errorf("%s: %d histograms, want 7", accept, seen)
		}
	}
}

// A scraper of protobuf gets both halves of a histogram, and a scraper of text gets the classic
// half.
func TestFormats(t *testing.T) {
	for accept, native := range map[string]bool{
		protobuf:                   true,
		"text/plain;version=0.0.4": false,
	} {
		families := scrapeHTTP(t, New(fixed{t, rich()}, richActs(), ClassicAndNative), accept)
		if len(families) != int(numMetrics) {
			t.Errorf("%s: %d families, want %d", accept, len(families), numMetrics)
		}
		for _, mf := range families {
			if mf.GetName() != "prober_exporter_probe_lateness_seconds" {
				continue
			}
			h := mf.GetMetric()[0].GetHistogram()
			if h.GetSampleCount() != 4 || len(h.GetBucket()) < 14 {
				t.Errorf("%s: no classic histogram: %v", accept, h)
			}
			if got := len(h.GetPositiveSpan()) > 0 && h.GetSchema() == 3 && h.GetZeroCount() == 1; got != native {
				t.Errorf("%s: native histogram: %t, want %t: %v", accept, got, native, h)
			}
		}
	}
}

// A label may have any value, even bytes that are not text, and the scrape of all targets succeeds
// in every format.
func FuzzLabelValue(f *testing.F) {
	for _, v := range []string{
		"", "x", `"`, `\`, "\n", "\x00", `a"b\c` + "\nd", "äöü €", "\xff\xfe", "a\xc3", "\u2028", "{}", "#", strings.Repeat("x", 1<<16),
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		status := rich()
		status.Statuses[0].Labels = []config.Label{{Name: "odd", Value: value}}
		status.Statuses[1].Instance.ID = value
		want := strings.ToValidUTF8(value, "\uFFFD")
		for _, accept := range []string{protobuf, "text/plain;version=0.0.4"} {
			for _, mf := range scrapeHTTP(t, New(fixed{t, status}, nil, ClassicAndNative), accept) {
				for _, m := range mf.GetMetric() {
					for _, l := range m.GetLabel() {
						if l.GetName() == "odd" && l.GetValue() != want {
							t.Fatalf("%s: %q came back as %q", accept, value, l.GetValue())
						}
					}
				}
			}
		}
		expectOpenMetrics(t, status)
	})
}

// expectOpenMetrics checks only the end of the answer: there is no decoder for the format.
func expectOpenMetrics(t *testing.T, status prober.Status) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(New(fixed{t, status}, nil, ClassicAndNative))
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Fatalf("status %d, %d bytes", w.Code, w.Body.Len())
	}
}

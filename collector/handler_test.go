// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

// told is a log that fails the test.
type told struct{ tb testing.TB }

func (l told) Println(v ...any) { l.tb.Error(v...) }

// handlers returns the handler, and the one through a registry that it stands for.
func handlers(tb testing.TB, p Prober, r Restarter, h Histograms) (ours, theirs http.Handler) {
	others, all := prometheus.NewRegistry(), prometheus.NewRegistry()
	for _, r := range []*prometheus.Registry{others, all} {
		late := prometheus.NewGauge(prometheus.GaugeOpts{Name: "zz_last", Help: `A "last" one, with \ and more.`})
		late.Set(math.Inf(-1))
		first := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aa_first_total", Help: "A first one."}, []string{"x"})
		first.WithLabelValues("a\"\n").Add(1e7)
		r.MustRegister(versioncollector.NewCollector("prober_exporter"), late, first)
	}
	all.MustRegister(New(p, r, h))
	theirs = promhttp.HandlerFor(all, promhttp.HandlerOpts{EnableOpenMetrics: true})
	ours = NewHandler(HandlerOptions{
		Prober: p, Restarter: r, Histograms: h, Others: others, Fallback: theirs, MaxRequestsInFlight: 2, ErrorLog: told{tb},
	})
	return ours, theirs
}

func ask(h http.Handler, path string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// accepts are the Accept headers of clients.
var accepts = []string{
	"", "*/*", "text/plain;version=0.0.4", "text/plain;version=0.0.4;escaping=allow-utf-8", "text/plain;version=1.0.0;escaping=allow-utf-8",
	"application/openmetrics-text;version=1.0.0", "application/openmetrics-text;version=0.0.1", "application/openmetrics-text",
	"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
	"application/openmetrics-text;version=2.0.0", protobuf, "text/html",
}

// odd returns a status with values and labels that have a surprising text form.
func odd() prober.Status {
	status := rich()
	status.InFlight = 1234567
	status.Panics = 100000000
	p := &status.Statuses[0].Probes[0]
	p.ConsecutiveFailures, p.Successful, p.Failed, p.Unknown = 999999, 1000000, math.MaxUint64, 1e15
	p.Durations.Successful.Count, p.Durations.Successful.Sum = 1000001, 1e21
	p.Durations.Successful.Classic[3] = 1000001
	p.Timeout, p.Period = 1, 1e6*time.Second
	status.Statuses[0].StartupDuration = 123 * time.Microsecond
	status.Statuses[1].Labels = []config.Label{{Name: "A", Value: "\\ \" \n"}, {Name: "probe", Value: "\xff"}, {Name: "zone", Value: "ä"}}
	for i := range 30 { // in no order, and some with labels of their own
		t := status.Statuses[i%3]
		t.Name = fmt.Sprintf("target-%d", i*7%30)
		if i%4 == 0 {
			t.Labels = []config.Label{{Name: "b", Value: fmt.Sprint(i % 5)}, {Name: "z", Value: ""}}
		}
		status.Statuses = append(status.Statuses, t)
	}
	return status
}

// Whatever a client accepts, the client gets the same bytes and headers as from a registry and
// promhttp.
func TestSameExposition(t *testing.T) {
	for name, status := range map[string]prober.Status{"nothing": {}, "rich": rich(), "odd": odd(), "large": large(50)} {
		sameExposition(t, name, status, ClassicAndNative)
		sameExposition(t, name+", native only", status, NativeOnly)
	}
}

func sameExposition(t *testing.T, name string, status prober.Status, as Histograms) {
	t.Helper()
	ours, theirs := handlers(t, fixed{t, status}, actsOf(status), as)
	for _, accept := range accepts {
		for _, path := range []string{"/metrics", "/metrics?name[]=prober_target_live&name[]=zz_last"} {
			header := http.Header{"Accept": {accept}}
			got, want := ask(ours, path, header), ask(theirs, path, header)
			if got.Body.String() != want.Body.String() || want.Body.Len() == 0 {
				t.Errorf("%s, %q: %s:\n%s\nwant\n%s", name, accept, path, firstDifference(got.Body.String(), want.Body.String()), firstDifference(want.Body.String(), got.Body.String()))
			}
			if got, want := fmt.Sprint(got.Code, got.Result().Header), fmt.Sprint(want.Code, want.Result().Header); got != want {
				t.Errorf("%s, %q: %s, want %s", name, accept, got, want)
			}
		}
	}
}

// firstDifference returns the part of a around where b differs.
func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[max(0, i-200):min(len(a), i+200)]
}

// A large answer is compressed for the same clients as promhttp's, and unpacks to the same
// bytes.
func TestSameEncoding(t *testing.T) {
	ours, theirs := handlers(t, fixed{t, large(50)}, nil, ClassicAndNative)
	for _, encoding := range []string{
		"", "gzip", "identity", "gzip, identity", "identity, gzip", "gzip;q=1.0, *;q=0.5", "gzip;q=0.1, identity;q=0.5", "gzip;q=0",
		"*", "*;q=0", "deflate", "deflate, gzip;q=0.2", "gzip;q=x", "br, zstd", "zstd, gzip",
	} {
		header := http.Header{"Accept-Encoding": {encoding}}
		got, want := ask(ours, "/metrics", header), ask(theirs, "/metrics", header)
		if got, want := got.Header().Get("Content-Encoding"), want.Header().Get("Content-Encoding"); got != want {
			t.Errorf("%q: encoding %q, want %q", encoding, got, want)
			continue
		}
		if got, want := unpacked(t, got), unpacked(t, want); got != want {
			t.Errorf("%q: %d bytes, want %d", encoding, len(got), len(want))
		}
	}
}

// An answer of less than 64 KiB, as from a sidecar, is not compressed. Its bytes are those that
// promhttp would compress.
func TestSmallAnswersAreNotCompressed(t *testing.T) {
	ours, theirs := handlers(t, fixed{t, rich()}, nil, ClassicAndNative)
	got, want := ask(ours, "/metrics", http.Header{"Accept-Encoding": {"gzip"}}), ask(theirs, "/metrics", nil)
	if encoding := got.Header().Get("Content-Encoding"); encoding != "" || got.Body.String() != want.Body.String() {
		t.Errorf("encoding %q, %d bytes; want none, %d bytes", encoding, got.Body.Len(), want.Body.Len())
	}
	if n := got.Body.Len(); n == 0 || n >= flushAt {
		t.Errorf("an answer of %d bytes is not small", n)
	}
}

func unpacked(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A compressed scrape makes no garbage the size of a compressor.
func TestCompressorsAreReused(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pool
	ours, _ := handlers(t, fixed{t, large(50)}, nil, ClassicAndNative)
	allocated := func(what func()) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 40 {
			what()
		}
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	fresh := allocated(func() { _, _ = gzip.NewWriter(io.Discard).Write([]byte{0}) })
	plain := allocated(func() { ask(ours, "/metrics", nil) })
	zipped := allocated(func() { ask(ours, "/metrics", http.Header{"Accept-Encoding": {"gzip"}}) })
	if zipped-plain > fresh*3/4 { // the race detector makes a pool drop a quarter
		t.Errorf("scrapes allocated %d bytes, %d of them to compress; as many new compressors %d", zipped, zipped-plain, fresh)
	}
}

// Scrapes at the same time share one snapshot; the next scrape takes its own. If two may run at a
// time, a third gets 503.
func TestSharedSnapshot(t *testing.T) {
	var mu sync.Mutex
	taken := 0
	ours, theirs := handlers(t, proberFunc(func(prober.Detail) prober.Status {
		mu.Lock()
		defer mu.Unlock()
		taken++
		return rich()
	}), nil, ClassicAndNative)
	first, second := newSlow(), newSlow()
	var scraping sync.WaitGroup
	for _, w := range []*slow{first, second} {
		scraping.Go(func() { ours.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)) })
		<-w.begun
	}
	refused := ask(ours, "/metrics", nil)
	if refused.Code != http.StatusServiceUnavailable || refused.Body.String() != "Limit of concurrent requests reached (2), try again later.\n" {
		t.Errorf("a third scrape: %d %s", refused.Code, refused.Body)
	}
	close(first.goOn)
	close(second.goOn)
	scraping.Wait()
	if taken != 1 {
		t.Errorf("%d snapshots for two scrapes at a time, want 1", taken)
	}
	if ask(ours, "/metrics", nil); taken != 2 {
		t.Errorf("%d snapshots after a third scrape, want 2", taken)
	}
	if h, ok := ours.(*handler); !ok || h.latest != nil {
		t.Error("a snapshot is kept after the last scrape")
	}
	want := ask(theirs, "/metrics", nil).Body.String()
	if got := first.Body.String(); got != want || second.Body.String() != want {
		t.Errorf("%d and %d bytes, want %d twice", len(got), second.Body.Len(), len(want))
	}
}

// slow is a client that takes its time to read.
type slow struct {
	*httptest.ResponseRecorder
	begun, goOn chan struct{}
	once        sync.Once
}

func newSlow() *slow {
	return &slow{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), goOn: make(chan struct{})}
}

func (s *slow) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.goOn
	return s.ResponseRecorder.Write(p)
}

// A client that goes away ends its scrape, which logs one line and keeps no memory.
func TestClientGone(t *testing.T) {
	var lines lineCount
	registry := prometheus.NewRegistry()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}) // registers the counter of errors
	h := NewHandler(HandlerOptions{Prober: fixed{t, large(50)}, Others: registry, MaxRequestsInFlight: 1, ErrorLog: &lines, Registry: registry})
	g := &gone{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(g, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if lines != 1 || g.writes != 1 {
		t.Errorf("%d lines, %d writes, want one each", lines, g.writes)
	}
	got := ask(h, "/metrics", nil)
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "\npromhttp_metric_handler_errors_total{cause=\"encoding\"} 1\n") {
		t.Errorf("the next scrape: %d, want one counted error", got.Code)
	}
}

type gone struct {
	*httptest.ResponseRecorder
	writes int
}

func (g *gone) Write([]byte) (int, error) {
	g.writes++
	return 0, errors.New("gone")
}

type lineCount int

func (n *lineCount) Println(...any) { *n++ }

// sink counts the bytes that are sent, and does nothing else.
type sink struct {
	header http.Header
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }

// BenchmarkScrape compares a scrape of 10,000 targets with a scrape through a registry.
func BenchmarkScrape(b *testing.B) {
	ours, theirs := handlers(b, fixed{b, large(10_000)}, nil, ClassicAndNative)
	for name, h := range map[string]http.Handler{"ours": ours, "registry": theirs} {
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(name+"/"+encoding, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
					r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
					r.Header.Set("Accept-Encoding", encoding)
					s := &sink{header: http.Header{}}
					h.ServeHTTP(s, r)
					b.ReportMetric(float64(s.n)/1e6, "MB")
				}
			})
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// shareFor is the greatest age of a snapshot that simultaneous scrapes share.
const shareFor = time.Second

// HandlerOptions are the options of NewHandler.
type HandlerOptions struct {
	Prober Prober
	// Restarter must be that of the Fallback's collector. Nil: there are no acts.
	Restarter Restarter
	// Histograms must be that of the Fallback's collector.
	Histograms Histograms
	// Others gathers the families beside those of Prober and Restarter.
	Others prometheus.Gatherer
	// Fallback answers requests for other formats than text, with all families, through
	// a registry.
	Fallback http.Handler
	// MaxRequestsInFlight bounds parallel scrapes, in text or not.
	MaxRequestsInFlight int
	// ErrorLog logs errors; never nil.
	ErrorLog promhttp.Logger
	// Registry gets the counter of errors, the same as promhttp's. Nil: errors are not
	// counted.
	Registry prometheus.Registerer
}

// NewHandler returns a handler for scrapes. The handler writes text itself, directly from
// the snapshot: with many targets a registry and expfmt take several times as long, and
// probes have to wait meanwhile.
func NewHandler(o HandlerOptions) http.Handler {
	h := &handler{HandlerOptions: o, slots: make(chan struct{}, o.MaxRequestsInFlight)}
	h.errors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promhttp_metric_handler_errors_total",
		Help: "Total number of internal errors encountered by the promhttp metric handler.",
	}, []string{"cause"})
	if o.Registry == nil {
		return h
	}
	var already prometheus.AlreadyRegisteredError
	if err := o.Registry.Register(h.errors); errors.As(err, &already) {
		if theirs, ok := already.ExistingCollector.(*prometheus.CounterVec); ok {
			h.errors = theirs // that of the fallback
		}
	}
	return h
}

type handler struct {
	HandlerOptions
	slots  chan struct{}
	errors *prometheus.CounterVec

	mu     sync.Mutex
	latest *shared // in use by a scrape; nil if none is
}

// shared is a snapshot that simultaneous scrapes share.
type shared struct {
	make  func() *allSeries // once
	taken time.Time
	users int
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		http.Error(w, "Limit of concurrent requests reached ("+strconv.Itoa(cap(h.slots))+"), try again later.",
			http.StatusServiceUnavailable)
		return
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	open := format.FormatType() == expfmt.TypeOpenMetrics
	switch {
	case !open && format.FormatType() != expfmt.TypeTextPlain,
		open && strings.Contains(string(format), "version="+expfmt.OpenMetricsVersion_2_0_0),
		r.URL.Query().Has("name[]"): // what is asked for by name
		h.Fallback.ServeHTTP(w, r)
		return
	}
	if err := h.write(w, r, format, open); err != nil {
		h.ErrorLog.Println("error encoding and sending metrics:", err)
		h.errors.WithLabelValues("encoding").Inc()
	}
}

// write answers in text.
func (h *handler) write(w http.ResponseWriter, r *http.Request, format expfmt.Format, open bool) (err error) {
	others, err := h.Others.Gather()
	if err != nil {
		h.ErrorLog.Println("error gathering metrics:", err) // some families may have come all the same
		h.errors.WithLabelValues("gathering").Inc()
	}
	w.Header().Add("Vary", "Accept")
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Set("Content-Type", string(format))
	var out io.Writer = w
	if wantsGzip(r.Header) {
		zipped := &zipLarge{to: w}
		defer func() { err = errors.Join(err, zipped.Close()) }()
		out = zipped
	}
	s, release := h.snapshot()
	defer release()
	text := newTextWriter(out, open, h.Histograms)
	encoder := expfmt.NewEncoder(text, format)
	for _, m := range byName {
		for len(others) > 0 && others[0].GetName() < table[m].name {
			if err := encoder.Encode(others[0]); err != nil {
				return err
			}
			others = others[1:]
		}
		if text.family(m, s); text.err != nil {
			return text.err
		}
	}
	for _, mf := range others {
		if err := encoder.Encode(mf); err != nil {
			return err
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok {
		if err := closer.Close(); err != nil {
			return err
		}
	}
	text.flush()
	return text.err
}

// zipLarge compresses an answer whose first piece is as large as pieces get. A smaller first
// piece is the whole answer, and goes out as it is: the tables of a compressor take 1.2 MB,
// more than everything else that a sidecar needs for a scrape.
type zipLarge struct {
	to     http.ResponseWriter
	began  bool
	zipped *gzip.Writer // nil: the answer goes out as it is
}

func (z *zipLarge) Write(p []byte) (int, error) {
	if !z.began && len(p) >= flushAt {
		z.to.Header().Set("Content-Encoding", "gzip")
		var err error
		if z.zipped, err = zipTo(z.to); err != nil {
			return 0, err
		}
	}
	z.began = true
	if z.zipped == nil {
		return z.to.Write(p)
	}
	return z.zipped.Write(p)
}

// Close ends the compressed answer.
func (z *zipLarge) Close() error {
	if z.zipped == nil {
		return nil
	}
	defer zippers.Put(z.zipped)
	return z.zipped.Close()
}

// zippers keeps compressors between scrapes: each has tables of a megabyte, more than
// everything else that a scrape of a few targets takes.
var zippers sync.Pool

// zipTo returns a compressor that writes to w.
func zipTo(w io.Writer) (*gzip.Writer, error) {
	if zipped, ok := zippers.Get().(*gzip.Writer); ok {
		zipped.Reset(w)
		return zipped, nil
	}
	return gzip.NewWriterLevel(w, gzip.BestSpeed)
}

// Write takes text that another encoder writes between families.
func (w *textWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if len(w.buf) >= flushAt {
		w.flush()
	}
	return len(p), w.err
}

// snapshot returns the series of this moment, or those of a snapshot that is at most a
// second old and still in use by another scrape. The caller must release them.
func (h *handler) snapshot() (_ *allSeries, release func()) {
	h.mu.Lock()
	s := h.latest
	if s == nil || time.Since(s.taken) > shareFor {
		s = &shared{taken: time.Now(), make: sync.OnceValue(func() *allSeries {
			a := (&snapshots{h.Prober, h.Restarter}).series()
			a.writeTexts()
			return a
		})}
		h.latest = s
	}
	s.users++
	h.mu.Unlock()
	return s.make(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.users--; s.users == 0 && h.latest == s {
			h.latest = nil // nothing of it is kept between scrapes
		}
	}
}

// wantsGzip reports whether a client prefers gzip to an answer as it is.
func wantsGzip(h http.Header) bool {
	gzipQuality, plainQuality := -1.0, -1.0
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			coding, parameters, _ := strings.Cut(part, ";")
			q := 1.0
			if value, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q="); ok {
				var err error
				if q, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
					q = 0
				}
			}
			switch strings.TrimSpace(coding) {
			case "gzip":
				gzipQuality = max(gzipQuality, q)
			case "identity":
				plainQuality = max(plainQuality, q)
			case "*":
				gzipQuality, plainQuality = max(gzipQuality, q), max(plainQuality, q)
			}
		}
	}
	return gzipQuality > 0 && gzipQuality > plainQuality
}

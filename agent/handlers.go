// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/prober-exporter/prober_exporter/collector"
	"github.com/prober-exporter/prober_exporter/web"
)

// scrapeLog logs the errors of scrapes.
type scrapeLog struct{ log *slog.Logger }

// Println logs an error; at level debug if the client went away, which is the client's affair.
func (s scrapeLog) Println(v ...any) {
	level := slog.LevelError
	for _, arg := range v {
		var gone *net.OpError
		if err, ok := arg.(error); ok && errors.As(err, &gone) {
			level = slog.LevelDebug
		}
	}
	s.log.Log(context.Background(), level, "scrape", "err", strings.TrimSpace(fmt.Sprintln(v...)))
}

// handlers holds the handlers of the two sorts of listener.
type handlers struct {
	web, health http.Handler
	healthy     func() bool // whether /-/healthy answers 200
}

func newHandlers(o *Options, l *loader, lostLines func() uint64) (handlers, error) {
	// The text format is written without a registry; other formats and filters by name use
	// a registry with all collectors.
	others, all := prometheus.NewRegistry(), prometheus.NewRegistry()
	unknown := collector.NewUnknownTargets(web.HealthEndpoints()...)
	own := []prometheus.Collector{&l.result, unknown, collector.NewLogLines(lostLines), collector.NewKubernetes(l.pod.Counts), versioncollector.NewCollector("prober_exporter")}
	if !o.NoOwnMetrics {
		own = append(own, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	others.MustRegister(own...)
	histograms := collector.ClassicAndNative
	if !o.ClassicHistograms {
		histograms = collector.NativeOnly
	}
	all.MustRegister(collector.New(l.manager, l.restarter, histograms))
	opts := promhttp.HandlerOpts{ErrorLog: scrapeLog{l.log}, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true}
	text := collector.HandlerOptions{
		Prober: l.manager, Restarter: l.restarter, Histograms: histograms, Others: others,
		MaxRequestsInFlight: o.MaxRequests, ErrorLog: scrapeLog{l.log},
	}
	if !o.NoOwnMetrics {
		opts.Registry, text.Registry = others, others
	}
	text.Fallback = promhttp.HandlerFor(prometheus.Gatherers{others, all}, opts)
	metrics := collector.NewHandler(text)
	if !o.NoOwnMetrics {
		metrics = promhttp.InstrumentMetricHandler(others, metrics)
	}
	s, err := web.New(web.Options{
		Prober:          l.manager,
		Restarter:       l.restarter,
		Logger:          l.log,
		Metrics:         metrics,
		TelemetryPath:   o.TelemetryPath,
		Config:          l.yaml,
		TargetConfig:    l.targetYAML,
		LastLoad:        l.lastLoad,
		Reload:          func(context.Context) error { return l.load() },
		UnknownTarget:   func(endpoint string) { unknown.WithLabelValues(endpoint).Inc() },
		ExternalURL:     o.ExternalURL,
		RoutePrefix:     o.RoutePrefix,
		EnableLifecycle: o.EnableLifecycle,
		LifecycleHosts:  o.LifecycleHosts,
		EnablePprof:     o.EnablePprof,
	})
	if err != nil {
		return handlers{}, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return handlers{web: s.Handler(), health: s.HealthHandler(), healthy: s.Healthy}, nil
}

// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/prober-exporter/prober_exporter/collector"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/web"
)

// drainTime is how long responses that are under way may take once the listeners
// have closed.
const drainTime = time.Second

// fewFiles is the limit of open files below which a crowd of clients, or of targets
// that hang, is felt.
const fewFiles = 256

// serve runs the agent until ctx is done or a signal ends it. It returns an error
// if it could not begin, or if a listener broke.
func serve(ctx context.Context, o *options, log *slog.Logger) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	if files := prober.OpenFiles(); files < fewFiles {
		log.Warn("the limit of open files is low: attempts wait for each other, and clients for their turn", "limit", files)
	}
	manager := prober.New(prober.Options{Logger: log, MaxInFlight: o.maxInFlight})
	defer manager.Close()
	l := &loader{file: o.configFile, log: log, manager: manager}
	handlers, err := newHandlers(o, l)
	if err != nil {
		return err
	}
	servers, err := newServers(o, log, handlers)
	if err != nil {
		return err
	}
	defer servers.close()

	background, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	if os.Getpid() == 1 {
		workers.Go(func() { action.ReapOrphans(background) })
	}
	// Applying is what begins to probe: it comes last of all that can go wrong.
	if err := l.load(); err != nil && !o.failOpen {
		return errors.New("there is no configuration to run with")
	}
	if o.autoReload || o.failOpen {
		workers.Go(func() { l.watch(background, o.autoReloadInterval, o.autoReload) })
	}
	broken := servers.start()

	for {
		select {
		case <-ctx.Done():
			shutDown(signals, o, log, manager, servers)
			return nil
		case err := <-broken:
			return err
		case s := <-signals:
			if s != syscall.SIGHUP {
				log.Info("stopping", "signal", s.String(), "delay", o.shutdownDelay)
				shutDown(signals, o, log, manager, servers)
				return nil
			}
			_ = l.load() // it has been logged
		}
	}
}

// shutDown goes on answering for the delay, then closes the listeners and ends the
// probes. A signal cuts every wait short.
func shutDown(signals <-chan os.Signal, o *options, log *slog.Logger, manager *prober.Manager, servers *servers) {
	manager.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wait := time.NewTimer(o.shutdownDelay)
	defer wait.Stop()
	for waiting := o.shutdownDelay > 0; waiting; {
		select {
		case <-wait.C:
			waiting = false
		case s := <-signals:
			if s != syscall.SIGHUP {
				log.Info("stopping at once", "signal", s.String())
				cancel()
				waiting = false
			}
		}
	}
	ctx, drained := context.WithTimeout(ctx, drainTime)
	defer drained()
	servers.shutdown(ctx)
	manager.Close()
	log.Info("stopped")
}

// handlers are what the two sorts of listener serve.
type handlers struct{ web, health http.Handler }

func newHandlers(o *options, l *loader) (handlers, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector.New(l.manager), &l.result, versioncollector.NewCollector("prober_exporter"))
	opts := promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(l.log.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: o.maxRequests,
		EnableOpenMetrics:   true,
	}
	metrics := promhttp.HandlerFor(registry, opts)
	if !o.noOwnMetrics {
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		opts.Registry = registry
		metrics = promhttp.InstrumentMetricHandler(registry, promhttp.HandlerFor(registry, opts))
	}
	s, err := web.New(web.Options{
		Prober:          l.manager,
		Logger:          l.log,
		Metrics:         metrics,
		TelemetryPath:   o.telemetryPath,
		Config:          l.yaml,
		Reload:          func(context.Context) error { return l.load() },
		ExternalURL:     o.externalURL,
		RoutePrefix:     o.routePrefix,
		EnableLifecycle: o.lifecycle,
		EnablePprof:     o.pprof,
	})
	if err != nil {
		return handlers{}, err
	}
	return handlers{web: s.Handler(), health: s.HealthHandler()}, nil
}

// servers are the listeners and what serves them.
type servers struct {
	o   *options
	log *slog.Logger
	handlers
	webListeners, healthListeners []net.Listener

	running sync.WaitGroup
	stopped chan struct{}
	mu      sync.Mutex
	all     []*http.Server
}

// newServers opens every listener, so that a taken address is known before anything
// is probed, and checks the web configuration.
func newServers(o *options, log *slog.Logger, h handlers) (_ *servers, err error) {
	s := &servers{o: o, log: log, handlers: h, stopped: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if *o.web.WebConfigFile != "" {
		if err := toolkit.Validate(*o.web.WebConfigFile); err != nil {
			err = fmt.Errorf("web configuration %q: %w", *o.web.WebConfigFile, err)
			if !o.failOpen {
				return nil, err
			}
			log.Error("the web listener does not serve", "err", err)
		}
		if len(o.healthAddresses) == 0 {
			log.Warn("probes of the health endpoints fail when the web configuration says so, or is broken: give them a listener of their own with --health.listen-address")
		}
	}
	if s.webListeners, err = listenWeb(o.web); err != nil {
		return nil, err
	}
	for _, address := range o.healthAddresses {
		l, err := listen(address)
		if err != nil {
			return nil, err
		}
		s.healthListeners = append(s.healthListeners, l)
	}
	return s, nil
}

// start serves. What it returns receives an error if a listener breaks.
func (s *servers) start() <-chan error {
	broken := make(chan error, len(s.webListeners)+len(s.healthListeners))
	for _, l := range s.webListeners {
		s.running.Go(func() {
			if err := s.serveWeb(l); err != nil {
				broken <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	for _, l := range s.healthListeners {
		s.running.Go(func() {
			s.log.Info("serving the health endpoints", "address", l.Addr().String())
			if err := s.newServer(s.health).Serve(limited(l)); !errors.Is(err, http.ErrServerClosed) {
				broken <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	return broken
}

// serveWeb serves a listener as the web configuration says. One that is broken
// from the start is an error or, with --config.fail-open, tried again.
func (s *servers) serveWeb(l net.Listener) error {
	l = limited(l)
	retry := time.NewTicker(s.o.autoReloadInterval)
	defer retry.Stop()
	for {
		err := toolkit.Serve(l, s.newServer(s.web), s.o.web, s.log)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		if !s.o.failOpen || errors.Is(err, net.ErrClosed) {
			return err
		}
		s.log.Error("the web listener does not serve", "address", l.Addr().String(), "err", err)
		select {
		case <-s.stopped:
			return nil
		case <-retry.C:
		}
	}
}

func (s *servers) newServer(h http.Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, server)
	return server
}

// shutdown closes the listeners and waits for the responses that are under way, no
// longer than ctx.
func (s *servers) shutdown(ctx context.Context) {
	close(s.stopped)
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	var draining sync.WaitGroup
	for _, server := range all {
		draining.Go(func() { _ = server.Shutdown(ctx) }) // close follows
	}
	draining.Wait()
}

// close closes everything that is still open, and waits for whoever served it.
func (s *servers) close() {
	s.mu.Lock()
	for _, server := range s.all {
		_ = server.Close()
	}
	s.mu.Unlock()
	for _, l := range append(s.webListeners, s.healthListeners...) {
		_ = l.Close() // it may be closed already
	}
	s.running.Wait()
}

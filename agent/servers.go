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
	"slices"
	"sync"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/prober-exporter/prober_exporter/agent/listen"
	"github.com/prober-exporter/prober_exporter/prober"
)

// drainTime is how long responses may take once the listeners have closed.
const drainTime = time.Second

// readTime is how long a request may take to arrive. healthReadTime is the same on a health
// listener: the kubelet's default timeout.
const readTime, healthReadTime = 5 * time.Second, time.Second

// reservedFiles is the number of connections that the health listeners can accept when no
// other file can be opened.
const reservedFiles = 8

// servers has the listeners and their HTTP servers.
type servers struct {
	o   *Options
	log *slog.Logger
	handlers
	webListeners, healthListeners []net.Listener
	webMissing                    bool // the web listeners could not be opened yet
	reserve                       *listen.Reserve

	running sync.WaitGroup
	stopped context.Context // done when nothing may be served any more
	stop    context.CancelFunc
	mu      sync.Mutex
	all     []*http.Server
}

// newServers opens every listener, so that an address in use is an error before the first
// attempt, and checks the web configuration.
func newServers(o *Options, log *slog.Logger, h handlers) (_ *servers, err error) {
	s := &servers{o: o, log: log, handlers: h}
	s.stopped, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if *o.Web.WebConfigFile != "" {
		if err := toolkit.Validate(*o.Web.WebConfigFile); err != nil {
			err = fmt.Errorf("web configuration %q: %w", *o.Web.WebConfigFile, err)
			if !o.FailOpen {
				return nil, err
			}
			log.Error("the web listener does not serve", "err", err)
		}
		if len(o.HealthAddresses) == 0 {
			log.Warn("the web configuration applies to the health endpoints, too, and a broken one fails their probes: give them a listener of their own with --health.listen-address")
		}
	}
	s.webListeners, err = listen.Web(o.Web)
	if err != nil && (!o.FailOpen || len(o.HealthAddresses) == 0) {
		return nil, err
	}
	if err != nil { // the agent must not run without health listeners
		log.Error("the web listener does not serve", "err", err)
		s.webMissing = true
	}
	for _, address := range o.HealthAddresses {
		l, err := listen.On(address)
		if err != nil {
			return nil, err
		}
		s.healthListeners = append(s.healthListeners, l)
	}
	s.reserve = listen.NewReserve(reservedFiles)
	return s, nil
}

// start serves all listeners. The channel receives an error if one breaks.
func (s *servers) start() <-chan error {
	broken := make(chan error, len(s.webListeners)+len(s.healthListeners))
	for _, l := range s.webListeners {
		s.running.Go(func() {
			if err := s.serveWeb(s.bound(l, len(s.webListeners))); err != nil {
				broken <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	if s.webMissing {
		s.running.Go(s.serveWebLater)
	}
	for _, l := range s.healthListeners {
		s.running.Go(func() {
			s.log.Info("serving the health endpoints", "address", l.Addr().String())
			server := s.newServer(s.health)
			server.ReadHeaderTimeout = healthReadTime
			// A connection kept by a client is one that the kubelet cannot have.
			server.SetKeepAlivesEnabled(false)
			if err := server.Serve(s.bound(l, len(s.healthListeners))); !errors.Is(err, http.ErrServerClosed) {
				broken <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	return broken
}

// bound bounds the connections of one of several listeners of a sort. Both sorts have the same
// share, so that clients of the web listeners take nothing from the kubelet.
func (s *servers) bound(l net.Listener, listeners int) net.Listener {
	r := s.reserve
	if len(s.healthListeners) > 0 && !slices.Contains(s.healthListeners, l) {
		r = nil
	}
	return listen.NewBounded(l, listen.Files(prober.OpenFiles())/2/listeners, r, s.log)
}

// serveWebLater tries to open the web listeners until it succeeds, and serves them.
func (s *servers) serveWebLater() {
	retry := time.NewTicker(s.o.AutoReloadInterval)
	defer retry.Stop()
	for {
		select {
		case <-s.stopped.Done():
			return
		case <-retry.C:
		}
		listeners, err := listen.Web(s.o.Web)
		if err != nil {
			continue // logged already
		}
		var serving sync.WaitGroup
		for _, l := range listeners {
			serving.Go(func() {
				if err := s.serveWeb(s.bound(l, len(listeners))); err != nil {
					s.log.Error("the web listener does not serve", "address", l.Addr().String(), "err", err)
				}
			})
		}
		serving.Wait()
		return
	}
}

// serveWeb serves a listener as the web configuration says. A web configuration that is broken
// from the start is an error or, with --config.fail-open, tried again.
func (s *servers) serveWeb(l net.Listener) error {
	retry := time.NewTicker(s.o.AutoReloadInterval)
	defer retry.Stop()
	for {
		err := toolkit.Serve(l, s.newServer(s.web), s.o.Web, s.log)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		if !s.o.FailOpen || errors.Is(err, net.ErrClosed) {
			return err
		}
		s.log.Error("the web listener does not serve", "address", l.Addr().String(), "err", err)
		select {
		case <-s.stopped.Done():
			return nil
		case <-retry.C:
		}
	}
}

func (s *servers) newServer(h http.Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadTimeout:       readTime, // for the body, too, which no endpoint needs
		ReadHeaderTimeout: readTime,
		MaxHeaderBytes:    listen.HeaderBytes,
		IdleTimeout:       time.Minute,
		ConnState:         listen.NoteState,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, server)
	if s.stopped.Err() != nil {
		_ = server.Close() // close may have closed the other servers already
	}
	return server
}

// shutdown closes the listeners and waits for the running responses, but no longer than ctx.
func (s *servers) shutdown(ctx context.Context) {
	s.stop()
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	var draining sync.WaitGroup
	for _, server := range all {
		draining.Go(func() { _ = server.Shutdown(ctx) }) // close follows
	}
	draining.Wait()
}

// close closes everything that is still open, and waits for its goroutines.
func (s *servers) close() {
	s.stop()
	s.mu.Lock()
	for _, server := range s.all {
		_ = server.Close()
	}
	s.mu.Unlock()
	for _, l := range append(s.webListeners, s.healthListeners...) {
		_ = l.Close() // may be closed already
	}
	s.reserve.End()
	s.running.Wait()
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/prober-exporter/prober_exporter/prober"
)

// addAPI adds all endpoints except the health endpoints.
func (s *Server) addAPI(mux *http.ServeMux, prefix string) {
	mux.HandleFunc("GET "+prefix+"/{$}", s.statusPage)
	mux.HandleFunc("GET "+prefix+"/targets/{target}", s.targetPage)
	mux.HandleFunc("GET "+prefix+"/static/{file}", serveAsset)
	mux.Handle("GET "+prefix+s.opts.TelemetryPath, s.opts.Metrics)
	mux.HandleFunc("GET "+prefix+"/config", s.config)
	mux.HandleFunc("GET "+prefix+"/api/v1/targets", s.targets)
	mux.HandleFunc("GET "+prefix+"/api/v1/targets/{target}", s.target)

	mux.Handle("POST "+prefix+"/-/reload", s.lifecycle(s.reload))
	mux.Handle("PUT "+prefix+"/-/reload", s.lifecycle(s.reload))
	mux.Handle("POST "+prefix+"/api/v1/targets/{target}/probe", s.lifecycle(s.tell(s.opts.Prober.Probe)))
	mux.Handle("POST "+prefix+"/api/v1/targets/{target}/new-instance", s.lifecycle(s.tell(s.opts.Prober.NewInstance)))

	if s.opts.EnablePprof {
		// The import registers these with the default mux too, which nobody serves.
		addPprof(mux, prefix, "/debug/pprof/", pprof.Index)
		addPprof(mux, prefix, "/debug/pprof/cmdline", pprof.Cmdline)
		addPprof(mux, prefix, "/debug/pprof/profile", pprof.Profile)
		addPprof(mux, prefix, "/debug/pprof/symbol", pprof.Symbol)
		addPprof(mux, prefix, "/debug/pprof/trace", pprof.Trace)
	}
}

// addPprof adds a handler without a limit of time: a client chooses how long a profile takes.
func addPprof(mux *http.ServeMux, prefix, path string, h http.HandlerFunc) {
	mux.Handle("GET "+prefix+path, http.StripPrefix(prefix, http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			writeWithin(w, 0)
			h(w, r)
		})))
}

func (s *Server) config(w http.ResponseWriter, _ *http.Request) {
	if !s.opts.Prober.Summary().Loaded {
		writeText(w, http.StatusServiceUnavailable, noConfiguration+"\n")
		return
	}
	body, err := s.opts.Config()
	if err != nil {
		writeText(w, http.StatusInternalServerError, fmt.Sprintf("show the configuration: %v\n", err))
		return
	}
	w.Header().Set("Content-Type", "text/yaml; charset=utf-8")
	w.Write(body)
}

// targets reads and writes one target after the other, so that the outputs of thousands
// of failing probes are never in memory all at once.
func (s *Server) targets(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body := bufio.NewWriterSize(w, 32<<10)
	defer func() { _ = body.Flush() }() // body keeps the first error: the client has gone
	enc, comma := json.NewEncoder(body), ""
	_, _ = body.WriteString(`{"targets":[`)
	for _, listed := range s.opts.Prober.Status(prober.Brief).Statuses {
		t, ok := s.opts.Prober.Target(listed.Name, prober.Full)
		if !ok {
			continue // a reload has removed it
		}
		_, _ = body.WriteString(comma)
		comma = ","
		if err := enc.Encode(newTarget(&t, s.restartOf(t.Name))); err != nil {
			return
		}
	}
	_, _ = body.WriteString("]}\n")
}

func (s *Server) target(w http.ResponseWriter, r *http.Request) {
	t, ok := s.opts.Prober.Target(r.PathValue("target"), prober.Full)
	if !ok {
		unknownTarget(w, r)
		return
	}
	writeJSON(w, http.StatusOK, newTarget(&t, s.restartOf(t.Name)))
}

func unknownTarget(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusNotFound, Error{"unknown target " + display(r.PathValue("target"))})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// lifecycle wraps every handler that changes something. A web page that happens to be
// open in a browser that reaches the exporter must not be able to use such a handler.
func (s *Server) lifecycle(h http.HandlerFunc) http.Handler {
	if !s.opts.EnableLifecycle {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeText(w, http.StatusForbidden, "Lifecycle API is not enabled.\n")
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.browsers.check(r); err != nil {
			writeText(w, http.StatusForbidden, err.Error()+"\n")
			return
		}
		// A request that is too large, or that did not arrive whole, changes nothing.
		if err := drain(w, r); err != nil {
			status := http.StatusBadRequest
			if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
				status = http.StatusRequestEntityTooLarge
			}
			writeText(w, status, fmt.Sprintf("read the request: %v\n", err))
			return
		}
		if s.opts.Prober.Summary().Stopping {
			writeText(w, http.StatusServiceUnavailable, "The agent is stopping.\n")
			return
		}
		h(w, r)
	})
}

// drain reads a request to its end, within bounds of size and time.
func drain(w http.ResponseWriter, r *http.Request) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(writeTimeout)) // as for writing: not every writer has deadlines
	_, err := io.Copy(io.Discard, r.Body)
	_ = c.SetReadDeadline(time.Time{}) // else the request's context would end then
	return err
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	err := s.opts.Reload(r.Context())
	writeWithin(w, writeTimeout) // a reload may have taken most of the time
	if err != nil {
		writeText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	writeText(w, http.StatusOK, "ok\n")
}

// tell returns a handler that tells the prober something about a target.
func (s *Server) tell(do func(name string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ok := do(r.PathValue("target"))
		writeWithin(w, writeTimeout) // do may have waited for a reload
		if !ok {
			unknownTarget(w, r)
			return
		}
		writeJSON(w, http.StatusOK, struct{}{})
	}
}

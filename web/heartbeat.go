// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"net/netip"
)

// heartbeatEndpoint is where applications post their beats.
const heartbeatEndpoint = "heartbeat"

// addHeartbeat adds the endpoint for beats. It needs no flag for clients beside the agent. elsewhere
// answers all others.
func (s *Server) addHeartbeat(mux *http.ServeMux, prefix string, elsewhere http.Handler) {
	beat := func(w http.ResponseWriter, r *http.Request) {
		if notBeside(r) == "" {
			s.beat(w, r)
			return
		}
		elsewhere.ServeHTTP(w, r)
	}
	mux.HandleFunc("POST "+prefix+"/"+heartbeatEndpoint+"/{target}", beat)
	mux.HandleFunc("POST "+prefix+"/"+heartbeatEndpoint+"/{target}/{probe}", beat)
}

// beat records a beat, whatever state the agent is in: nobody but the probe asks for it. The body
// is not read.
func (s *Server) beat(w http.ResponseWriter, r *http.Request) {
	target, probe := r.PathValue("target"), r.PathValue("probe")
	if s.opts.Prober.Beat(target, probe) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	what := "target " + display(target) + " with a heartbeat probe that has no file"
	if probe != "" {
		what = "heartbeat probe " + display(probe) + " without a file in target " + display(target)
	}
	writeText(w, http.StatusNotFound, "There is no "+what+".\n")
}

// refuseBeat answers a client that is not beside the agent: whoever reaches the address of a pod
// could otherwise keep a dead application alive.
func refuseBeat(w http.ResponseWriter, r *http.Request) {
	writeText(w, http.StatusForbidden, notBeside(r)+"\n")
}

// notBeside returns why a beat may come from elsewhere, empty if it comes from a client on the
// agent's machine or in its pod. Such a client may have bound any loopback address.
func notBeside(r *http.Request) string {
	if !betweenLoopbacks(r) {
		return "Only a client on the agent's own machine or in its pod may post a heartbeat here, from a loopback address."
	}
	return passedOn(r)
}

// fromMesh is the loopback address from which a service mesh forwards requests from outside.
var fromMesh = netip.AddrFrom4([4]byte{127, 0, 0, 6})

// betweenLoopbacks reports whether both ends of the connection are loopback addresses, and no mesh
// is between them.
func betweenLoopbacks(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	from := remote.Addr().Unmap()
	return ok && local.IP.IsLoopback() && from.IsLoopback() && from != fromMesh
}

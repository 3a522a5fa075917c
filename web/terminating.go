// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"net/netip"
)

// terminating is for a pod's preStop hook, a command in the agent's own container: the hook
// reports that the pod is being deleted. Nobody else may send this request, because it
// ends liveness probing for good.
func (s *Server) terminating(w http.ResponseWriter, r *http.Request) {
	if reason := foreign(r); reason != "" {
		writeText(w, http.StatusForbidden, reason+"\n")
		return
	}
	s.opts.Prober.Terminate()
	writeText(w, http.StatusOK, "ok\n")
}

// foreign returns why a request may come from elsewhere, empty if it comes from a command
// on the agent's machine or in its pod.
func foreign(r *http.Request) string {
	if !fromLoopback(r) {
		return "Only a command on the agent's own machine or in its pod may send this request, from 127.0.0.1 or ::1."
	}
	return passedOn(r)
}

// passedOn returns why a request from this machine may serve somebody elsewhere, empty if nothing
// says so. Browsers send the first two headers with every POST. Proxies send one of the others.
func passedOn(r *http.Request) string {
	for _, header := range [...]string{"Origin", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For", "Via"} {
		if r.Header.Get(header) != "" {
			return "Browsers and proxies may not send this request: it has the header " + header + "."
		}
	}
	return ""
}

// fromLoopback reports whether both ends of the connection are this machine, or this pod.
// A client that dials loopback gets the address 127.0.0.1 or ::1. A service mesh forwards
// requests from outside under another address, 127.0.0.6.
func fromLoopback(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() {
		return false
	}
	from := remote.Addr().Unmap()
	return from == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || from == netip.IPv6Loopback()
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strings"

	"github.com/prober-exporter/prober_exporter/prober"
)

// kubeProbe is how the User-Agent of a kubelet's own probes begins.
const kubeProbe = "kube-probe/"

// tellAsked tells the prober of a kubelet's question about one target: a kubelet asks about
// a container only while it runs (rule 4.8).
func (s *Server) tellAsked(r *http.Request, c *check, target string) {
	if strings.HasPrefix(r.UserAgent(), kubeProbe) {
		s.opts.Prober.Asked(target, c.kind)
	}
}

// tellAskedTogether does the same for a question about several targets. Named targets are
// all in the container that the kubelet asks about. Without names the question counts
// only if there is a single target.
func (s *Server) tellAskedTogether(r *http.Request, c *check, sum prober.Summary) {
	if !strings.HasPrefix(r.UserAgent(), kubeProbe) {
		return
	}
	for _, target := range r.URL.Query()["target"] {
		s.opts.Prober.Asked(target, c.kind)
	}
	if !r.URL.Query().Has("target") && sum.Targets == 1 {
		for _, t := range s.opts.Prober.Status(prober.Brief).Statuses {
			s.opts.Prober.Asked(t.Name, c.kind)
		}
	}
}

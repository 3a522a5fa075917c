// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"testing"

	"github.com/prober-exporter/prober_exporter/agent/healthcheck/failopen"
	"github.com/prober-exporter/prober_exporter/prober"
)

// The prober hears which targets a kubelet asks about. A kubelet asks about a container only
// while the container runs; other clients ask whenever they like.
func TestAsked(t *testing.T) {
	for _, tt := range []struct {
		agent, path string
		want        []string
	}{
		{"kube-probe/1.36", "/live/app", []string{"liveness app"}},
		{failopen.UserAgent, "/live/app", []string{"liveness app"}},
		{"kube-probe/1.36", "/started/app", []string{"startup app"}},
		{"kube-probe/1.36+", "/ready/db?verbose", []string{"readiness db"}},
		{"kube-probe/1.36", "/live?target=db", []string{"liveness db"}},
		{"kube-probe/1.36", "/live?target=db&target=app", []string{"liveness db", "liveness app"}},
		{"kube-probe/1.36", "/live", nil},
		{"kube-probe/1.36", "/-/healthy", nil},
		{"curl/8.0", "/live/app", nil},
		{"", "/live?target=db", nil},
	} {
		f := &fake{statuses: []prober.TargetStatus{well("app"), well("db")}}
		get(newServer(t, options(f)).HealthHandler(), tt.path, "User-Agent: "+tt.agent)
		if !slices.Equal(f.asked, tt.want) {
			t.Errorf("%s by %q tells of %q, want %q", tt.path, tt.agent, f.asked, tt.want)
		}
	}
	alone := &fake{statuses: []prober.TargetStatus{well("app")}}
	get(newServer(t, options(alone)).HealthHandler(), "/live", "User-Agent: kube-probe/1.36")
	if !slices.Equal(alone.asked, []string{"liveness app"}) {
		t.Errorf("/live of one target tells of %q", alone.asked)
	}
}

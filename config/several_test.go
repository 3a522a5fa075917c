// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/gate"
)

// A list has its probes in the order of the file, and requires all of them unless the file says
// otherwise. What a member says counts as what a single probe says: secrets, ports, and times.
func TestSeveral(t *testing.T) {
	target := mustLoad(t, `
targets:
  - name: a
    startupProbe: {tcpSocket: {port: 1}}
    readinessProbes:
      probes: [{name: x, httpGet: {port: 2, httpHeaders: [{name: A, value: s3cret}]}}, {name: y, grpc: {port: 3}}]
    livenessProbes:
      require: any
      probes: [{name: x, tcpSocket: {port: 4}}, {name: y, tcpSocket: {port: 5}}, {name: z, tcpSocket: {port: 6}}]
`)
	var all []string
	for k, p := range target.All() {
		all = append(all, k.String()+"/"+p.Name)
		if target.Named(k, p.Name) != p {
			t.Errorf("%s/%s is not found", k, p.Name)
		}
	}
	if want := []string{"startup/", "readiness/x", "readiness/y", "liveness/x", "liveness/y", "liveness/z"}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	for kind, want := range map[gate.Kind][2]int{gate.Startup: {1, 1}, gate.Readiness: {2, 2}, gate.Liveness: {3, 1}} {
		if got := [2]int{len(target.Of(kind)), target.Require(kind)}; got != want {
			t.Errorf("%s: %d probes of which %d must succeed, want %d", kind, got[0], got[1], want)
		}
	}
	if target.Named(gate.Readiness, "") != nil || target.Named(gate.Startup, "x") != nil || target.Probe(gate.Liveness) != nil {
		t.Error("found a probe that is not there")
	}
	if got := target.Secrets(); !slices.Contains(got, "s3cret") {
		t.Errorf("secrets: %q", got)
	}
	ports := ""
	for _, l := range target.Instance.Listeners {
		ports += fmt.Sprint(l.Port, " ")
	}
	if ports != "1 2 3 4 5 6 " && target.Instance.Source == SourceListener {
		t.Errorf("the listener watches %s", ports)
	}
}

// A list has room for 100 probes.
func TestMaxMembers(t *testing.T) {
	for n, ok := range map[int]bool{MaxMembers: true, MaxMembers + 1: false} {
		var b strings.Builder
		b.WriteString("targets:\n  - name: a\n    readinessProbes:\n      probes:\n")
		for i := range n {
			fmt.Fprintf(&b, "        - {name: p%d, tcpSocket: {port: 1}}\n", i)
		}
		if _, _, err := load(t, b.String()); (err == nil) != ok {
			t.Errorf("%d members: %v", n, err)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// The grace period is that of the failed probe or, without one, of the block, and at least 2 s;
// one beyond the range of a duration is the longest.
func TestGracePeriod(t *testing.T) {
	target := mustLoad(t, `
targets:
  - name: a
    instance: {source: process, match: x}
    startupProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 7}
    readinessProbe: {tcpSocket: {port: 1}}
    livenessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 9223372036854775807}
    restart: {signal: {}, terminationGracePeriodSeconds: 0.5}
`)
	for kind, want := range map[gate.Kind]time.Duration{
		gate.Startup: 7 * time.Second, gate.Readiness: 2 * time.Second, gate.Liveness: 2147483647 * time.Second,
	} {
		if got := target.GracePeriod(kind, ""); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// A member of a list has a grace period of its own, too.
func TestGracePeriodOfAMember(t *testing.T) {
	target := mustLoad(t, `
targets:
  - name: a
    instance: {source: process, match: x}
    livenessProbes:
      probes:
        - {name: a, tcpSocket: {port: 1}, terminationGracePeriodSeconds: 7}
        - {name: b, tcpSocket: {port: 1}}
    restart: {signal: {}}
`)
	for name, want := range map[string]time.Duration{"a": 7 * time.Second, "b": 30 * time.Second, "": 30 * time.Second} {
		if got := target.GracePeriod(gate.Liveness, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Names of signals are those of Kubernetes, and real-time signals have the numbers of the C library.
func TestRealTimeSignals(t *testing.T) {
	for name, want := range map[string]int{
		"SIGRTMIN": 34, "SIGRTMIN+3": 37, "SIGRTMIN+15": 49, "SIGRTMAX-14": 50, "SIGRTMAX": 64,
		"SIGRTMIN+0": 0, "SIGRTMIN+16": 0, "SIGRTMAX-15": 0, "SIGRTMAX-0": 0, "SIGTERM": 0, "": 0,
	} {
		if got, ok := RealTimeSignal(name); got != want || ok != (want != 0) {
			t.Errorf("%s: %d, %t, want %d", name, got, ok, want)
		}
	}
}

// Every handler has a name, and a block without one has none.
func TestHandlerNames(t *testing.T) {
	if got := (&Restart{}).Handler(); got != "" || len(RestartHandlers()) != 4 {
		t.Errorf("handler %q, %d handlers", got, len(RestartHandlers()))
	}
	if got := (&Restart{Systemd: &RestartSystemd{}}).Handler(); got != "systemd" {
		t.Errorf("handler %q", got)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
)

// Equal probes share one value, with their action, in whatever targets they are. Probes that
// differ in anything, or that have headers, do not.
func TestSharedProbes(t *testing.T) {
	cfg, _, err := load(t, `targets:
  - name: a
    labels: {team: x}
    readinessProbe: {httpGet: {path: /ok, port: 80}}
    livenessProbe: {httpGet: {port: 80, path: /ok}, periodSeconds: 10}
    startupProbe: {httpGet: {path: /ok, port: 80}, periodSeconds: 1}
  - name: b
    host: 10.0.0.1
    labels: {team: x}
    readinessProbe: {httpGet: {path: /ok, port: 80}}
    livenessProbe: {httpGet: {path: /other, port: 80}}
    startupProbe: {httpGet: {path: /ok, port: 80, host: 10.0.0.2}}
  - name: c
    labels: {team: y}
    readinessProbe: {httpGet: {path: /ok, port: 80, httpHeaders: [{name: A, value: x}]}}
    livenessProbe: {httpGet: {path: /ok, port: 80, httpHeaders: [{name: A, value: y}]}}
  - name: d
    readinessProbe: {exec: {command: [a, b c]}}
    livenessProbe: {exec: {command: [a b, c]}}
  - name: e
    readinessProbe: {exec: {command: [a, b c]}}
    livenessProbe: {exec: {command: [a, b c]}, timeoutSeconds: 2}
  - name: f
    readinessProbe: {httpGet: {port: 80, expect: {statusCodes: [200, 307], bodyMatches: a, headers: [{name: A, matches: b}]}}}
    livenessProbe: {httpGet: {port: 80, expect: {statusCodes: ["200-200", "307"], bodyMatches: a, headers: [{name: A, matches: b}]}}}
    startupProbe: {httpGet: {port: 80, expect: {statusCodes: [200, 307], bodyDoesNotMatch: a, headers: [{name: A, matches: b}]}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, d, e := &cfg.Targets[0], &cfg.Targets[1], &cfg.Targets[2], &cfg.Targets[3], &cfg.Targets[4]
	if a.ReadinessProbe != a.LivenessProbe || a.ReadinessProbe != b.ReadinessProbe || d.ReadinessProbe != e.ReadinessProbe {
		t.Error("equal probes do not share a value")
	}
	if a.StartupProbe.HTTPGet != a.ReadinessProbe.HTTPGet || d.ReadinessProbe.Exec != e.LivenessProbe.Exec {
		t.Error("equal actions of different probes do not share a value")
	}
	if f := &cfg.Targets[5]; f.ReadinessProbe != f.LivenessProbe || f.StartupProbe.HTTPGet == f.ReadinessProbe.HTTPGet {
		t.Error("probes that expect the same do not share a value, or others do")
	}
	for name, got := range map[string]string{
		"period":  fmt.Sprint(a.StartupProbe.Period, a.ReadinessProbe.Period),
		"path":    b.LivenessProbe.HTTPGet.Path + b.ReadinessProbe.HTTPGet.Path,
		"host":    b.StartupProbe.HTTPGet.Host + b.ReadinessProbe.HTTPGet.Host,
		"header":  c.ReadinessProbe.HTTPGet.Headers[0].Value + c.LivenessProbe.HTTPGet.Headers[0].Value,
		"command": strings.Join(d.ReadinessProbe.Exec.Command, ",") + " " + strings.Join(d.LivenessProbe.Exec.Command, ","),
		"label":   a.Labels[0].Value + b.Labels[0].Value + c.Labels[0].Value,
	} {
		want := map[string]string{
			"period": "1s 10s", "path": "/other/ok", "host": "10.0.0.2", "header": "xy", "command": "a,b c a b,c", "label": "xxy",
		}[name]
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Equal probes share one value with their tlsConfig. Probes that differ in it do not.
func TestSharedTLS(t *testing.T) {
	cfg, _, err := load(t, `targets:
  - name: a
    readinessProbe: {httpGet: {port: 443, scheme: HTTPS, tlsConfig: {caFile: /a}}}
    startupProbe: {httpGet: {port: 443, scheme: HTTPS, tlsConfig: {caFile: /a, serverName: b}}}
  - name: b
    readinessProbe: {httpGet: {port: 443, scheme: HTTPS, tlsConfig: {caFile: /a, minVersion: TLS12}}}
    startupProbe: {httpGet: {port: 443, scheme: HTTPS}}
  - name: c
    readinessProbe: {grpc: {port: 443, mode: TLS, tlsConfig: {caFile: /a}}}
    startupProbe: {grpc: {port: 443, mode: TLS}}
  - name: d
    readinessProbe: {grpc: {port: 443, mode: TLS, tlsConfig: {caFile: /a}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, d := &cfg.Targets[0], &cfg.Targets[1], &cfg.Targets[2], &cfg.Targets[3]
	if a.ReadinessProbe != b.ReadinessProbe || c.ReadinessProbe != d.ReadinessProbe || c.ReadinessProbe.GRPC.TLS != a.ReadinessProbe.HTTPGet.TLS {
		t.Error("equal probes do not share a value")
	}
	if a.StartupProbe.HTTPGet.TLS.ServerName != "b" || b.StartupProbe.HTTPGet.TLS != nil || c.StartupProbe.GRPC.TLS != nil {
		t.Error("different probes share a value")
	}
}

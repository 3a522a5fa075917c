// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

// flatPeriod is the shortest period. A probe that takes longer takes its next turn at once.
const flatPeriod = time.Millisecond

// ours starts the whole agent without its listeners: a configuration in YAML, the gate, the
// real actions, counters, histograms, the history, and the log at level info.
func ours(s spec) (*subject, error) {
	m, err := apply(s, s.Probes)
	if err != nil {
		return nil, err
	}
	return &subject{
		manager: m,
		counts: func() (ok, failed uint64) {
			status := m.Status(prober.Brief)
			for _, t := range status.Statuses {
				for i := range t.Probes {
					ok += t.Probes[i].Successful
					failed += t.Probes[i].Failed + t.Probes[i].Unknown
				}
			}
			return ok, failed
		},
		why:  func() string { return whyNot(m) },
		stop: m.Close,
	}, nil
}

// apply starts a manager with n targets.
func apply(s spec, n int) (*prober.Manager, error) {
	period := s.Period
	if period == 0 {
		period = flatPeriod
	}
	kinds := s.Kinds
	if kinds == nil {
		kinds = []string{"readiness"}
	}
	m := prober.New(prober.Options{Logger: newLogger()})
	if err := reconfigure(m, configuration(s, n, period, kinds)); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func reconfigure(m *prober.Manager, text string) error {
	cfg, _, err := config.Load("bench.yml", []byte(text), os.LookupEnv)
	if err != nil {
		return fmt.Errorf("load the configuration: %w", err)
	}
	return m.Apply(cfg)
}

// configuration returns a file with n targets, each with probes of these kinds.
func configuration(s spec, n int, period time.Duration, kinds []string) string {
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range n {
		host, port := "127.0.0.1", ""
		switch s.Action {
		case actionExec, actionBeat:
		case actionUnix:
			host = s.address(i)
		default:
			host, port, _ = net.SplitHostPort(s.address(i)) // the address of a listener has both
		}
		fmt.Fprintf(&b, "- name: target-%d\n  host: %s\n  labels: {team: payments}\n", i, host)
		if s.Source != "" {
			fmt.Fprintf(&b, "  instance: {source: %s}\n", s.Source)
		}
		for _, k := range kinds {
			fmt.Fprintf(&b, "  %sProbe:\n    periodSeconds: %v\n    timeoutSeconds: %v\n    %s\n",
				k, period.Seconds(), attemptTimeout.Seconds(), stanza(&s, i, port))
		}
	}
	return b.String()
}

// stanza returns the action of probe i.
func stanza(s *spec, i int, port string) string {
	switch s.Action {
	case actionHTTP:
		return "httpGet: {path: /, port: " + port + "}"
	case actionUnix:
		return "httpGet: {path: /}"
	case actionHTTPS:
		return "httpGet: {path: /, scheme: HTTPS, port: " + port + "}"
	case actionVerified:
		return "httpGet: {path: /, scheme: HTTPS, port: " + port + ", tlsConfig: {caFile: " + s.CA + ", serverName: " + serverName + "}}"
	case actionTCP:
		return "tcpSocket: {port: " + port + "}"
	case actionGRPC:
		return "grpc: {port: " + port + "}"
	case actionBeat:
		return "heartbeat: {file: " + s.address(i) + ", maxAgeSeconds: 3600}"
	}
	return "exec: {command: [" + command + "]}"
}

// whyNot returns the output of the last attempt that did not succeed.
func whyNot(m *prober.Manager) string {
	status := m.Status(prober.Full)
	for _, t := range status.Statuses {
		for i := range t.Probes {
			if last := t.Probes[i].LastFailures; len(last) > 0 {
				a := last[len(last)-1]
				return fmt.Sprintf("%s: %s: %s", t.Name, a.Reason, a.Output)
			}
		}
	}
	return ""
}

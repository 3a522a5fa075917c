// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package actiontest

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// HTTPGet returns a target and a probe that asks the target over HTTP.
func HTTPGet(address string, timeout time.Duration, h config.HTTPGet) (*config.Target, *config.Probe) {
	host, port := Split(address)
	if h.Port.Number == 0 {
		h.Port.Number = port
	}
	return &config.Target{Host: host}, &config.Probe{HTTPGet: &h, Timeout: timeout}
}

// TCPSocket returns a target and a probe that connects to the target.
func TCPSocket(address string, timeout time.Duration) (*config.Target, *config.Probe) {
	host, port := Split(address)
	p := &config.TCPSocket{Port: config.PortRef{Number: port}}
	return &config.Target{Host: host}, &config.Probe{TCPSocket: p, Timeout: timeout}
}

// GRPC returns a target and a probe that asks the target over gRPC.
func GRPC(address string, timeout time.Duration, service, mode string) (*config.Target, *config.Probe) {
	host, port := Split(address)
	p := &config.GRPC{Port: port, Service: service, Mode: mode}
	return &config.Target{Host: host}, &config.Probe{GRPC: p, Timeout: timeout}
}

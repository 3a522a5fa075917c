// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// httpProbe is an httpGet action; the address is that of the target.
func httpProbe(address string, timeout time.Duration, h config.HTTPGet) Func {
	host, port := split(address)
	if h.Port.Number == 0 {
		h.Port.Number = port
	}
	return New(&config.Target{Host: host}, &config.Probe{HTTPGet: &h, Timeout: timeout})
}

func tcpProbe(address string, timeout time.Duration) Func {
	host, port := split(address)
	p := &config.TCPSocket{Port: config.PortRef{Number: port}}
	return New(&config.Target{Host: host}, &config.Probe{TCPSocket: p, Timeout: timeout})
}

func grpcProbe(address string, timeout time.Duration, service, mode string) Func {
	host, port := split(address)
	p := &config.GRPC{Port: port, Service: service, Mode: mode}
	return New(&config.Target{Host: host}, &config.Probe{GRPC: p, Timeout: timeout})
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import "github.com/prober-exporter/prober_exporter/config"

// actions is the table of all actions.
var actions = []struct {
	is      func(*config.Probe) bool
	new     func(*config.Target, *config.Probe) Func
	files   func(*config.Target, *config.Probe) int
	address func(*config.Target, *config.Probe) string
}{
	{func(p *config.Probe) bool { return p.Exec != nil }, newExec, execFiles, execAddress},
	{func(p *config.Probe) bool { return p.HTTPGet != nil }, newHTTPGet, httpFiles, httpAddress},
	{func(p *config.Probe) bool { return p.TCPSocket != nil }, newTCPSocket, tcpFiles, tcpAddress},
	{func(p *config.Probe) bool { return p.GRPC != nil }, newGRPC, grpcFiles, grpcAddress},
}

func New(t *config.Target, p *config.Probe) Func {
	for _, a := range actions {
		if a.is(p) {
			return a.new(t, p)
		}
	}
	return nil
}

func Files(t *config.Target, p *config.Probe) int {
	for _, a := range actions {
		if a.is(p) {
			return a.files(t, p)
		}
	}
	return 0
}

func Address(t *config.Target, p *config.Probe) string {
	for _, a := range actions {
		if a.is(p) {
			return a.address(t, p)
		}
	}
	return ""
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/exec"
	"github.com/prober-exporter/prober_exporter/prober/action/grpc"
	"github.com/prober-exporter/prober_exporter/prober/action/heartbeat"
	"github.com/prober-exporter/prober_exporter/prober/action/httpget"
	"github.com/prober-exporter/prober_exporter/prober/action/tcpsocket"
)

// actions holds every action, by its name in the configuration.
var actions = map[string]struct {
	// new returns what an attempt of one of a target's probes does.
	new func(*config.Target, *config.Probe) action.Func
	// files returns how many files an attempt has open at most.
	files func(*config.Target, *config.Probe) int
	// address returns the address an attempt asks, for people to read, or where its
	// beats come from; "" for a command.
	address func(*config.Target, *config.Probe) string
}{
	"exec":      {exec.New, exec.Files, exec.Address},
	"httpGet":   {httpget.New, httpget.Files, httpget.Address},
	"tcpSocket": {tcpsocket.New, tcpsocket.Files, tcpsocket.Address},
	"grpc":      {grpc.New, grpc.Files, grpc.Address},
	"heartbeat": {heartbeat.New, heartbeat.Files, heartbeat.Address},
}

// newAction returns what an attempt of one of t's probes does.
func newAction(t *config.Target, p *config.Probe) action.Func { return actions[p.Action()].new(t, p) }

// filesOf returns how many files an attempt of one of t's probes has open at most.
func filesOf(t *config.Target, p *config.Probe) int { return actions[p.Action()].files(t, p) }

// addressOf returns the address that one of t's probes asks: a URL without its userinfo, a
// host and port, the file or path of a heartbeat, or "" for a command.
func addressOf(t *config.Target, p *config.Probe) string { return actions[p.Action()].address(t, p) }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package config holds the shape of the configuration file, and decodes, defaults
// and validates it. A Config is immutable once it has been returned: its targets share
// what they have in common.
package config

import (
	"iter"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// Config is a whole configuration file, after defaults and validation.
type Config struct {
	Targets    []Target
	Kubernetes *Kubernetes // nil: the agent writes nothing to its pod
}

// Target is a target with its probes; it has at least one probe.
type Target struct {
	Name     string
	Host     string // a name, an IP address, or unix:// and the path of a socket
	Ports    []Port
	Env      []EnvVar // secret: values never reach a log, a page or a metric
	Labels   []Label  // sorted by name, no name twice
	Instance Instance

	// A kind has one probe, a list of probes, or neither.
	StartupProbe   *Probe
	ReadinessProbe *Probe
	LivenessProbe  *Probe
	// Several has the lists, by kind; nil if there are none.
	Several *[gate.NumKinds]Probes

	Restart *Restart // nil: the agent does not restart the target
}

// Probes is a list of probes of one kind, which judge together.
type Probes struct {
	// Require is how many members must succeed, from 1 to the number of members.
	Require int
	// Members have names, no name twice.
	Members []*Probe
}

// All yields all probes of the target, by kind and then in the order of the file.
func (t *Target) All() iter.Seq2[gate.Kind, *Probe] {
	return func(yield func(gate.Kind, *Probe) bool) {
		for _, k := range gate.Kinds() {
			if p := t.Probe(k); p != nil && !yield(k, p) {
				return
			}
			for _, p := range t.Members(k) {
				if !yield(k, p) {
					return
				}
			}
		}
	}
}

// Members returns the list of a kind, empty if the target has none.
func (t *Target) Members(k gate.Kind) []*Probe {
	if t.Several == nil {
		return nil
	}
	return t.Several[k].Members
}

// Of returns the probes of a kind: the only one, or those of the list. The caller must not change
// the slice.
func (t *Target) Of(k gate.Kind) []*Probe {
	if p := t.Probe(k); p != nil {
		return []*Probe{p}
	}
	return t.Members(k)
}

// Named returns the probe of a kind that has the name, which is empty for the only probe; nil if
// there is none.
func (t *Target) Named(k gate.Kind, name string) *Probe {
	if p := t.Probe(k); p != nil && name == "" {
		return p
	}
	for _, p := range t.Members(k) {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Require returns how many probes of a kind must succeed: one if there is only one.
func (t *Target) Require(k gate.Kind) int {
	switch {
	case t.Probe(k) != nil:
		return 1
	case t.Several != nil:
		return t.Several[k].Require
	}
	return 0
}

// Probe returns the target's only probe of a kind; nil if it has none, or a list.
func (t *Target) Probe(k gate.Kind) *Probe {
	switch k {
	case gate.Startup:
		return t.StartupProbe
	case gate.Readiness:
		return t.ReadinessProbe
	case gate.Liveness:
		return t.LivenessProbe
	}
	return nil
}

// Port is a container port; probes refer to it by name.
type Port struct {
	Name          string
	ContainerPort int
	Protocol      string
}

// EnvVar is a variable for exec probes.
type EnvVar struct {
	Name, Value string
}

// Label is put on every series of a target.
type Label struct {
	Name, Value string
}

// Instance says how the agent sees restarts of the target. Only the fields of the
// chosen source are set.
type Instance struct {
	Source string
	// Auto says that the file left the choice to the agent, and Why has the reason.
	Auto bool
	Why  string

	// For the listener. Listeners come from Ports or, without any, from the probes.
	Ports     []PortRef // as in the file; empty: those of the probes
	Listeners []Listener
	MaxHold   time.Duration // how long a hold after a failure may last
	Refresh   time.Duration // how often the sockets are read

	// For the process: exactly one is set.
	PIDFile string
	Port    PortRef
	Match   string // a valid regular expression for the command line

	// For docker: Container or Label. For kubernetes: Container.
	Container string // docker: name or ID prefix
	Label     Label
	Socket    string // path of the daemon's socket
}

// Listener is a socket that a target listens on: a TCP socket or, if SocketPath knows the host, a
// Unix socket without a port.
type Listener struct {
	Host string
	Port int
}

// The instance sources.
const (
	sourceAuto = "auto" // the listener for a target on this machine with a port or a socket, else static

	SourceStatic     = "static"     // one instance for ever
	SourceListener   = "listener"   // inferred from listening sockets
	SourceProcess    = "process"    // a process of this machine
	SourceDocker     = "docker"     // a container of a Docker Engine
	SourceKubernetes = "kubernetes" // a container of the agent's own pod
)

// PortRef is a port as the file gives it, by number or by name.
type PortRef struct {
	Name   string // empty if it was given by number
	Number int    // 1 to 65535, resolved from the name at load; 0: no port
}

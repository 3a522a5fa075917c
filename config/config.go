// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package config holds the shape of the configuration file, and decodes, defaults
// and validates it. A Config is immutable once it has been returned: its targets share
// what they have in common.
package config

import (
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// Config is a whole configuration file, after defaults and validation.
type Config struct {
	Targets []Target
}

// Target is a target with its probes; at least one probe is not nil.
type Target struct {
	Name     string
	Host     string
	Ports    []Port
	Env      []EnvVar // secret: values never reach a log, a page or a metric
	Labels   []Label  // sorted by name, no name twice
	Instance Instance

	StartupProbe   *Probe
	ReadinessProbe *Probe
	LivenessProbe  *Probe
}

// Probe returns the target's probe of a kind, nil if it has none.
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

// Listener is a TCP socket that a target listens on.
type Listener struct {
	Host string
	Port int
}

// The instance sources.
const (
	sourceAuto = "auto" // the listener for a target on this machine with a TCP port, else static

	SourceStatic     = "static"     // one instance for ever
	SourceListener   = "listener"   // inferred from listening sockets
	SourceProcess    = "process"    // a process of this machine
	SourceDocker     = "docker"     // a container of a Docker Engine
	SourceKubernetes = "kubernetes" // a container of the agent's own pod
)

// Probe is a Kubernetes core/v1 Probe: exactly one of its four actions is set.
type Probe struct {
	Exec      *Exec
	HTTPGet   *HTTPGet
	TCPSocket *TCPSocket
	GRPC      *GRPC

	InitialDelay     time.Duration
	Timeout          time.Duration
	Period           time.Duration
	SuccessThreshold int
	FailureThreshold int

	// TerminationGracePeriodSeconds is validated and shown, without effect.
	TerminationGracePeriodSeconds *int64
}

// Action names the probe's action as the file spells it: exec, httpGet,
// tcpSocket or grpc.
func (p *Probe) Action() string {
	switch {
	case p.Exec != nil:
		return "exec"
	case p.HTTPGet != nil:
		return "httpGet"
	case p.TCPSocket != nil:
		return "tcpSocket"
	case p.GRPC != nil:
		return "grpc"
	}
	return ""
}

// Exec runs a command in the agent's own file system; exit status 0 is success.
type Exec struct {
	Command []string // as written: $(NAME) is not expanded yet
}

// HTTPGet asks a URL; any status from 200 to 399 is success.
type HTTPGet struct {
	Host     string // empty: the target's
	Port     PortRef
	Path     string
	Scheme   string   // HTTP or HTTPS
	Headers  []Header // secret: values never reach a log, a page or a metric
	Protocol string   // HTTP1, HTTP2 or empty, which is HTTP1
}

// Header is a request header.
type Header struct {
	Name, Value string
}

// TCPSocket connects; a connection is success.
type TCPSocket struct {
	Host string // empty: the target's
	Port PortRef
}

// GRPC asks the grpc.health.v1.Health service of the target's host.
type GRPC struct {
	Port    int
	Service string
	Mode    string // Plaintext, TLS or empty, which is Plaintext
}

// PortRef is a port as the file gives it, by number or by name.
type PortRef struct {
	Name   string // empty if it was given by number
	Number int    // 1 to 65535; resolved from the name at load
}

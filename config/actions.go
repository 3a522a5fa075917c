// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Probe is a Kubernetes core/v1 Probe: exactly one of its actions is set. Heartbeat
// is an action that Kubernetes does not have.
type Probe struct {
	Name string // of a member of a list; empty for the only probe of its kind

	Exec      *Exec
	HTTPGet   *HTTPGet
	TCPSocket *TCPSocket
	GRPC      *GRPC
	Heartbeat *Heartbeat

	InitialDelay     time.Duration
	Timeout          time.Duration
	Period           time.Duration
	UnhealthyPeriod  time.Duration // while the result is not Success; at most Period, 0: Period
	SuccessThreshold int
	FailureThreshold int

	// TerminationGracePeriodSeconds has no effect unless the target has a Restart.
	TerminationGracePeriodSeconds *int64
}

// Action names the probe's action as the file spells it: exec, httpGet,
// tcpSocket, grpc or heartbeat.
func (p *Probe) Action() string {
	if a := p.kind(); a != nil {
		return a.name
	}
	return ""
}

// OnlyAction returns a probe that has p's action and nothing else of p.
func (p *Probe) OnlyAction() Probe {
	return Probe{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket, GRPC: p.GRPC, Heartbeat: p.Heartbeat}
}

// kind returns the row of p's action; nil if p has none.
func (p *Probe) kind() *actionKind {
	for i := range actions {
		if a := &actions[i]; a.is(p) {
			return a
		}
	}
	return nil
}

// Exec runs a command in the agent's own file system; exit status 0 is success.
type Exec struct {
	Command []string // as written: $(NAME) is not expanded yet
}

// HTTPGet asks a URL; any status from 200 to 399 is success, unless there is an Expect.
type HTTPGet struct {
	Host     string  // empty: the target's
	Port     PortRef // zero if the host is a socket
	Path     string
	Scheme   string   // HTTP or HTTPS
	Headers  []Header // secret: values never reach a log, a page or a metric
	Protocol string   // HTTP1, HTTP2 or empty, which is HTTP1
	TLS      *TLS     // nil: nothing is verified
	Expect   *Expect  // nil: any status from 200 to 399
}

// TCPSocket connects; a connection is success.
type TCPSocket struct {
	Host string  // empty: the target's
	Port PortRef // zero if the host is a socket
}

// GRPC asks the grpc.health.v1.Health service of the target's host.
type GRPC struct {
	Port    int // 0 if the host is a socket
	Service string
	Mode    string // Plaintext, TLS or empty, which is Plaintext
	TLS     *TLS   // nil: nothing is verified
}

// actionKind is an action, as the file has it: a row of the table of actions.
type actionKind struct {
	name string
	is   func(p *Probe) bool
	// decode sets the action of a probe of t.
	decode func(d *decoder, v value, p *Probe, t *Target)
	// share replaces the action by an equal one that c has seen.
	share func(p *Probe, c *shared)
	// fill writes the action without its secrets.
	fill func(p *Probe, n *yaml.Node)
	// endpoint returns where the action connects to: a host and a port, or a socket and 0. It is
	// nil if the action does not connect.
	endpoint func(p *Probe, host string) (string, int)
}

// actions is the table of actions, in the order of the documentation.
var actions = []actionKind{
	{
		name:   "exec",
		is:     func(p *Probe) bool { return p.Exec != nil },
		decode: func(d *decoder, v value, p *Probe, t *Target) { p.Exec = d.exec(v, t) },
		share: func(p *Probe, c *shared) {
			// A command has no NUL, or it is a mistake.
			p.Exec = one(c.commands, strings.Join(p.Exec.Command, "\x00"), p.Exec)
		},
		fill: func(p *Probe, n *yaml.Node) { p.Exec.fill(n) },
	},
	{
		name:   "httpGet",
		is:     func(p *Probe) bool { return p.HTTPGet != nil },
		decode: func(d *decoder, v value, p *Probe, t *Target) { p.HTTPGet = d.httpGet(v, t) },
		share: func(p *Probe, c *shared) {
			if h := p.HTTPGet; h.Headers == nil {
				p.HTTPGet = one(c.gets, plainGet{host: h.Host, path: h.Path, scheme: h.Scheme, protocol: h.Protocol, port: h.Port, tls: h.TLS, expect: h.Expect}, h)
			}
		},
		fill: func(p *Probe, n *yaml.Node) { p.HTTPGet.fill(n) },
		endpoint: func(p *Probe, host string) (string, int) {
			return cmp.Or(p.HTTPGet.Host, host), p.HTTPGet.Port.Number
		},
	},
	{
		name:   "tcpSocket",
		is:     func(p *Probe) bool { return p.TCPSocket != nil },
		decode: func(d *decoder, v value, p *Probe, t *Target) { p.TCPSocket = d.tcpSocket(v, t) },
		share:  func(p *Probe, c *shared) { p.TCPSocket = one(c.sockets, *p.TCPSocket, p.TCPSocket) },
		fill: func(p *Probe, n *yaml.Node) {
			addText(n, "host", p.TCPSocket.Host)
			addPort(n, p.TCPSocket.Port)
		},
		endpoint: func(p *Probe, host string) (string, int) {
			return cmp.Or(p.TCPSocket.Host, host), p.TCPSocket.Port.Number
		},
	},
	{
		name:   "grpc",
		is:     func(p *Probe) bool { return p.GRPC != nil },
		decode: func(d *decoder, v value, p *Probe, t *Target) { p.GRPC = d.grpc(v, t) },
		share:  func(p *Probe, c *shared) { p.GRPC = one(c.grpcs, *p.GRPC, p.GRPC) },
		fill: func(p *Probe, n *yaml.Node) {
			addPort(n, PortRef{Number: p.GRPC.Port})
			add(n, "service", text(p.GRPC.Service))
			addText(n, "mode", p.GRPC.Mode)
			addTLS(n, p.GRPC.TLS)
		},
		endpoint: func(p *Probe, host string) (string, int) { return host, p.GRPC.Port },
	},
	{
		name:   "heartbeat",
		is:     func(p *Probe) bool { return p.Heartbeat != nil },
		decode: func(d *decoder, v value, p *Probe, _ *Target) { p.Heartbeat = d.heartbeat(v) },
		share:  func(p *Probe, c *shared) { p.Heartbeat = one(c.beats, *p.Heartbeat, p.Heartbeat) },
		fill:   func(p *Probe, n *yaml.Node) { p.Heartbeat.fill(n) },
	},
}

// ActionNames returns the names of all actions, in the order of the documentation.
func ActionNames() []string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = a.name
	}
	return names
}

// action sets the probe's only action. If there are several, the first counts, and the
// content of the others is not checked (rule 14.1).
func (d *decoder) action(o object, p *Probe, t *Target) {
	found := false
	for _, a := range actions {
		v := o.get(a.name)
		switch {
		case !v.set():
		case found:
			d.wrong(v, "may not specify more than 1 handler type")
		default:
			found = true
			a.decode(d, v, p, t)
		}
	}
	if !found {
		names, last := ActionNames(), len(actions)-1
		d.wrong(o.value, "must specify a handler type: %s or %s", strings.Join(names[:last], ", "), names[last])
	}
}

func (d *decoder) exec(v value, t *Target) *Exec {
	o, ok := d.object(v, "command")
	if !ok {
		return nil
	}
	v = o.get("command")
	items := d.list(v)
	if len(items) == 0 {
		if !v.set() || typeName(v.node) == aList {
			d.wrong(v, required)
		}
		return nil
	}
	e := &Exec{Command: make([]string, len(items))}
	valid := true
	for i, item := range items {
		// Unlike a key, an item cannot be unset.
		if !d.is(item, aString) {
			valid = false
			continue
		}
		e.Command[i] = d.shared.text(item.node.Value)
		if strings.ContainsRune(e.Command[i], 0) {
			d.wrong(item, "must not contain a NUL byte")
			valid = false
		}
	}
	if valid {
		d.noticeCommand(items[0], e, t)
	}
	return e
}

func (d *decoder) httpGet(v value, t *Target) *HTTPGet {
	o, ok := d.object(v, "path", "port", "host", "scheme", "httpHeaders", "protocol", "tlsConfig", "expect")
	if !ok {
		return nil
	}
	path, _ := d.str(o.get("path"))
	host := d.probeHost(o.get("host"))
	h := &HTTPGet{
		Host:     host,
		Port:     d.portAt(o.get("port"), cmp.Or(host, t.Host), t.Ports),
		Path:     cmp.Or(path, "/"),
		Scheme:   cmp.Or(d.scheme(o.get("scheme")), "HTTP"),
		Headers:  d.headers(o.get("httpHeaders")),
		Protocol: d.enum(o.get("protocol"), "HTTP1", "HTTP2"),
		Expect:   d.expect(o.get("expect")),
	}
	h.TLS = d.tls(o.get("tlsConfig"), h.Scheme == "HTTPS", "scheme: HTTPS")
	if v := o.get("protocol"); h.Protocol == "HTTP2" {
		if h.Scheme == "HTTPS" {
			d.wrong(v, "must not be HTTP2 with scheme HTTPS")
		}
		if h.Host != "" && !meansSocket(h.Host) {
			d.wrong(v, "must not be HTTP2 together with host")
		}
	}
	return h
}

// scheme returns the scheme. An empty one is unset, as the API server defaults it;
// an empty protocol or mode is not defaulted and so is an error.
func (d *decoder) scheme(v value) string {
	if v.set() && typeName(v.node) == aString && v.node.Value == "" {
		return ""
	}
	return d.enum(v, "HTTP", "HTTPS")
}

// probeHost returns the host of a probe. A host that is written as empty is unset. A
// host that substitution makes empty is a mistake.
func (d *decoder) probeHost(v value) string {
	if v.set() && typeName(v.node) == aString && v.node.Value == "" {
		return ""
	}
	return d.host(v, "")
}

func (d *decoder) tcpSocket(v value, t *Target) *TCPSocket {
	o, ok := d.object(v, "port", "host")
	if !ok {
		return nil
	}
	host := d.probeHost(o.get("host"))
	return &TCPSocket{Host: host, Port: d.portAt(o.get("port"), cmp.Or(host, t.Host), t.Ports)}
}

func (d *decoder) grpc(v value, t *Target) *GRPC {
	o, ok := d.object(v, "port", "service", "mode", "tlsConfig")
	if !ok {
		return nil
	}
	service, _ := d.str(o.get("service"))
	g := &GRPC{Service: service, Mode: d.enum(o.get("mode"), "Plaintext", "TLS")}
	if v := o.get("port"); meansSocket(t.Host) {
		d.noPort(v)
	} else {
		g.Port = d.portNumber(v)
	}
	g.TLS = d.tls(o.get("tlsConfig"), g.Mode == "TLS", "mode: TLS")
	return g
}

func (e *Exec) fill(n *yaml.Node) {
	command := list()
	for _, arg := range e.Command {
		command.Content = append(command.Content, text(arg))
	}
	add(n, "command", command)
}

func (h *HTTPGet) fill(n *yaml.Node) {
	addText(n, "host", h.Host)
	addPort(n, h.Port)
	path := h.Path
	if user, ok := userinfo(path); ok {
		path = strings.Replace(path, user+"@", redacted+"@", 1)
	}
	add(n, "path", text(path))
	add(n, "scheme", text(h.Scheme))
	headers := list()
	for i := range h.Headers {
		headers.Content = append(headers.Content, h.Headers[i].node())
	}
	addSome(n, "httpHeaders", headers)
	addText(n, "protocol", h.Protocol)
	addTLS(n, h.TLS)
	if h.Expect != nil {
		add(n, "expect", h.Expect.node())
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// The API server's defaults (rule 13.1).
const (
	defaultTimeout          = time.Second
	defaultPeriod           = 10 * time.Second
	defaultSuccessThreshold = 1
	defaultFailureThreshold = 3
)

// probeFields are the keys of a probe.
var probeFields = []string{
	"exec", "httpGet", "tcpSocket", "grpc", "initialDelaySeconds", "timeoutSeconds",
	"periodSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds",
}

// probe returns a probe of t. The ports and the environment of t are known already.
func (d *decoder) probe(v value, kind gate.Kind, t *Target) *Probe {
	o, ok := d.object(v, probeFields...)
	if !ok {
		return nil
	}
	p := &Probe{
		InitialDelay:     d.seconds(o.get("initialDelaySeconds")),
		Timeout:          cmp.Or(d.seconds(o.get("timeoutSeconds")), defaultTimeout),
		Period:           cmp.Or(d.seconds(o.get("periodSeconds")), defaultPeriod),
		SuccessThreshold: cmp.Or(d.count(o.get("successThreshold")), defaultSuccessThreshold),
		FailureThreshold: cmp.Or(d.count(o.get("failureThreshold")), defaultFailureThreshold),
	}
	if kind != gate.Readiness && p.SuccessThreshold != 1 {
		v := o.get("successThreshold")
		d.wrong(v, "must be 1, is %s", clip(v.node.Value))
	}
	p.TerminationGracePeriodSeconds = d.gracePeriod(o.get("terminationGracePeriodSeconds"), kind)
	d.action(o, p, t)
	return d.shared.probe(p)
}

func (d *decoder) gracePeriod(v value, kind gate.Kind) *int64 {
	if !v.set() {
		return nil
	}
	if kind == gate.Readiness {
		d.wrong(v, "must not be set for readinessProbes")
		return nil
	}
	n := d.integer(v, 1, math.MaxInt64, positive, "must be less than or equal to 9223372036854775807")
	if n > 0 {
		d.noticef(Info, v.line, v.path(), "has no effect here: keep the key on the container's own probe")
	}
	return &n
}

// action sets the probe's only action. If there are several, the first counts, and the
// content of the others is not checked (rule 14.1).
func (d *decoder) action(o object, p *Probe, t *Target) {
	found := false
	for _, a := range []struct {
		key    string
		decode func(value)
	}{
		{"exec", func(v value) { p.Exec = d.exec(v, t) }},
		{"httpGet", func(v value) { p.HTTPGet = d.httpGet(v, t) }},
		{"tcpSocket", func(v value) { p.TCPSocket = d.tcpSocket(v, t) }},
		{"grpc", func(v value) { p.GRPC = d.grpc(v) }},
	} {
		v := o.get(a.key)
		switch {
		case !v.set():
		case found:
			d.wrong(v, "may not specify more than 1 handler type")
		default:
			found = true
			a.decode(v)
		}
	}
	if !found {
		d.wrong(o.value, "must specify a handler type: exec, httpGet, tcpSocket or grpc")
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
	o, ok := d.object(v, "path", "port", "host", "scheme", "httpHeaders", "protocol")
	if !ok {
		return nil
	}
	path, _ := d.str(o.get("path"))
	h := &HTTPGet{
		Host:     d.probeHost(o.get("host")),
		Port:     d.portRef(o.get("port"), t.Ports),
		Path:     cmp.Or(path, "/"),
		Scheme:   cmp.Or(d.scheme(o.get("scheme")), "HTTP"),
		Headers:  d.headers(o.get("httpHeaders")),
		Protocol: d.enum(o.get("protocol"), "HTTP1", "HTTP2"),
	}
	if v := o.get("protocol"); h.Protocol == "HTTP2" {
		if h.Scheme == "HTTPS" {
			d.wrong(v, "must not be HTTP2 with scheme HTTPS")
		}
		if h.Host != "" {
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

func (d *decoder) headers(v value) []Header {
	items := d.list(v)
	if len(items) == 0 {
		return nil
	}
	headers := make([]Header, 0, len(items))
	for _, item := range items {
		o, ok := d.pair(item, "name", "value")
		if !ok {
			continue
		}
		var h Header
		v := o.get("name")
		if h.Name, ok = d.str(v); ok {
			switch {
			case h.Name == "":
				d.wrong(v, required)
			case !validHeaderName(h.Name):
				// Without the name, which may be a whole header.
				d.wrong(v, "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')")
			}
		}
		v = o.get("value")
		if h.Value, ok = d.substituted(v); ok && !validHeaderValue(h.Value) {
			d.wrong(v, "must not contain a newline or another control character: such a request cannot be sent")
		}
		headers = append(headers, h)
	}
	return headers
}

func (d *decoder) tcpSocket(v value, t *Target) *TCPSocket {
	o, ok := d.object(v, "port", "host")
	if !ok {
		return nil
	}
	return &TCPSocket{Host: d.probeHost(o.get("host")), Port: d.portRef(o.get("port"), t.Ports)}
}

func (d *decoder) grpc(v value) *GRPC {
	o, ok := d.object(v, "port", "service", "mode")
	if !ok {
		return nil
	}
	service, _ := d.str(o.get("service"))
	return &GRPC{
		Port:    d.portNumber(o.get("port")),
		Service: service,
		Mode:    d.enum(o.get("mode"), "Plaintext", "TLS"),
	}
}

// portRef returns a port by number or by name. The first port of that name counts,
// whatever its protocol (rule 8.1). Unlike in a kubelet, an unknown name is an error,
// because the probe would never count (rule 7.6).
func (d *decoder) portRef(v value, ports []Port) PortRef {
	if v.set() && typeName(v.node) != aNumber && typeName(v.node) != aString {
		d.wrong(v, "must be a number or a string, is %s", typeName(v.node))
		return PortRef{}
	}
	if !v.set() || typeName(v.node) == aNumber || v.node.Style == 0 && isNumber(v.node.Value) {
		return PortRef{Number: d.portNumber(v)}
	}
	name := d.shared.text(v.node.Value)
	if problem := portNameProblem(name); problem != "" {
		d.wrong(v, "%s, is %s", problem, quote(name))
		return PortRef{}
	}
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Name == name })
	if i < 0 {
		d.wrong(v, "must be the name of one of the target's ports, is %s", quote(name))
		return PortRef{}
	}
	return PortRef{Name: name, Number: ports[i].ContainerPort}
}

func isNumber(s string) bool {
	_, ok := parseDecimal(s)
	return ok
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/gate"
)

const defaultHost = "127.0.0.1"

// probeKeys are the keys of the probes, in the order of gate.Kinds.
var probeKeys = [gate.NumKinds]string{"startupProbe", "readinessProbe", "livenessProbe"}

// listKeys are the keys of lists of probes, in the order of gate.Kinds.
var listKeys = [gate.NumKinds]string{"startupProbes", "readinessProbes", "livenessProbes"}

func (d *decoder) config(root *yaml.Node) *Config {
	if isManifest(root) {
		d.manifest(root)
		return nil
	}
	o, ok := d.object(value{node: root, line: root.Line}, "targets", "kubernetes")
	if !ok {
		return nil
	}
	v := o.get("targets")
	if !v.set() {
		d.wrong(v, "%s: write `targets: []` if there is nothing to probe", required)
		return nil
	}
	items := d.list(v)
	c := &Config{Targets: make([]Target, 0, len(items))}
	lines := make(map[string]int, len(items))
	for _, item := range items {
		if t, ok := d.target(item, lines); ok {
			c.Targets = append(c.Targets, t)
		}
	}
	c.Kubernetes = d.kubernetes(o.get("kubernetes"), lines)
	d.checkRestarts(items, c)
	d.noticeDrain(items, c)
	return c
}

// isManifest reports whether the file is for Kubernetes.
func isManifest(root *yaml.Node) bool {
	var apiVersion, kind bool
	if root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch root.Content[i].Value {
		case "apiVersion":
			apiVersion = true
		case "kind":
			kind = true
		case "targets":
			return false
		}
	}
	return apiVersion && kind
}

// manifest reports a Kubernetes manifest, and how to convert it.
func (d *decoder) manifest(root *yaml.Node) {
	d.errorf(root.Line, "", "is a Kubernetes manifest: prober_exporter --config.from-pod=FILE converts it to a configuration")
}

// target returns a target. lines has the names so far.
func (d *decoder) target(v value, lines map[string]int) (Target, bool) {
	keys := append([]string{"name", "host", "ports", "env", "labels", "instance", "restart"}, probeKeys[:]...)
	o, ok := d.object(v, append(keys, listKeys[:]...)...)
	if !ok {
		return Target{}, false
	}
	t := Target{
		Name:   d.name(o.get("name"), lines),
		Host:   d.host(o.get("host"), defaultHost),
		Ports:  d.ports(o.get("ports")),
		Env:    d.env(o.get("env")),
		Labels: d.labels(o.get("labels"), hasList(o)),
	}
	t.Instance = d.instance(o.get("instance"), &t)
	t.Restart = d.restart(o.get("restart"), &t)
	if !d.probes(o, &t) {
		d.wrong(v, "must have at least one of startupProbe, readinessProbe, livenessProbe")
	}
	d.listeners(o.get("instance"), &t)
	d.noticeBoots(probesOf(o, gate.Liveness), &t)
	d.checkRestart(o.get("restart"), &t)
	return t, true
}

func (d *decoder) name(v value, lines map[string]int) string {
	s, ok := d.str(v)
	first, taken := lines[s]
	switch {
	case !ok:
	case !v.set():
		d.wrong(v, required)
	case !validTargetName(s):
		d.wrong(v, "must begin with a letter or digit, have only letters, digits, '-', '_' and '.', and be no more than 63 characters, is %s", quote(s))
	case taken:
		d.wrong(v, "duplicate name %s, first on line %d", quote(s), first)
	default:
		lines[s] = v.line
	}
	return s
}

// host returns a host after substitution; unset if the file has none.
func (d *decoder) host(v value, unset string) string {
	if !v.set() {
		return unset
	}
	s, ok := d.substituted(v)
	switch {
	case !ok:
	case s == "":
		d.wrong(v, "must not be empty")
	case meansSocket(s):
		if problem := socketProblem(s); problem != "" {
			d.wrong(v, "%s", problem)
		}
	case !validHost(s):
		d.wrong(v, "must be a host name or an IP address, without scheme, port and brackets")
	}
	return s
}

func (d *decoder) ports(v value) []Port {
	items := d.list(v)
	if len(items) == 0 {
		return nil
	}
	ports := make([]Port, 0, len(items))
	lines := make(map[string]int, len(items))
	for _, item := range items {
		o, ok := d.object(item, "name", "containerPort", "protocol")
		if !ok {
			continue
		}
		p := Port{
			Name:          d.portName(o.get("name"), lines),
			ContainerPort: d.portNumber(o.get("containerPort")),
			Protocol:      cmp.Or(d.enum(o.get("protocol"), "TCP", "UDP", "SCTP"), "TCP"),
		}
		ports = append(ports, p)
	}
	return ports
}

// portName returns the name of a port, which may be empty. lines has the names so far.
func (d *decoder) portName(v value, lines map[string]int) string {
	s, ok := d.str(v)
	if !ok || s == "" {
		return ""
	}
	if problem := portNameProblem(s); problem != "" {
		d.wrong(v, "%s, is %s", problem, quote(s))
		return s
	}
	if first, taken := lines[s]; taken {
		d.wrong(v, "duplicate name %s, first on line %d", quote(s), first)
		return s
	}
	lines[s] = v.line
	return s
}

func (d *decoder) portNumber(v value) int {
	if !v.set() {
		d.wrong(v, required)
		return 0
	}
	return int(d.integer(v, 1, 65535, portNumber, portNumber))
}

func (d *decoder) env(v value) []EnvVar {
	items := d.list(v)
	if len(items) == 0 {
		return nil
	}
	env := make([]EnvVar, 0, len(items))
	for _, item := range items {
		o, ok := d.pair(item, "name", "value", "valueFrom")
		if !ok {
			continue
		}
		var e EnvVar
		v := o.get("name")
		if e.Name, ok = d.str(v); ok {
			switch {
			case e.Name == "":
				d.wrong(v, required)
			case !validEnvName(e.Name):
				// Without the name, which may be NAME=value.
				d.wrong(v, "a valid environment variable name must consist only of printable ASCII characters other than '='")
			}
		}
		v = o.get("value")
		if e.Value, ok = d.substituted(v); ok && strings.ContainsRune(e.Value, 0) {
			d.wrong(v, "must not contain a NUL byte")
		}
		if v = o.get("valueFrom"); v.set() {
			d.wrong(v, "is not supported, because the agent does not ask the Kubernetes API: set the variable for the agent and write `value: ${NAME}`")
		}
		env = append(env, e)
	}
	return env
}

// hasList reports whether a target has a list of probes.
func hasList(o object) bool {
	return slices.ContainsFunc(listKeys[:], func(key string) bool { return o.get(key).set() })
}

// memberLabel is the label that tells the members of a list apart. A target without lists may have
// a label of this name.
const memberLabel = "probe"

// labels returns the labels of a target, which has a list of probes or none.
func (d *decoder) labels(v value, list bool) []Label {
	if !v.set() || !d.is(v, aMapping) {
		return nil
	}
	entries := d.entries(v)
	if len(entries) == 0 {
		return nil
	}
	labels, here := make([]Label, 0, len(entries)), v.parent()
	for _, e := range entries {
		problem := labelNameProblem(e.key)
		if list && e.key == memberLabel {
			problem = "the label name is reserved on a target with a list of probes"
		}
		if problem != "" {
			d.errorf(e.line, v.child(e.key).path(), "%s", problem)
		}
		v := e.value(here)
		s, ok := d.substituted(v)
		switch {
		case !ok:
		case !v.set():
			d.wrong(v, "must be a string, is null")
		case !utf8.ValidString(s), strings.ContainsRune(s, 0):
			d.wrong(v, "must be text in UTF-8 without a NUL byte")
		}
		labels = append(labels, Label{Name: d.shared.text(e.key), Value: s})
	}
	slices.SortFunc(labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return d.shared.labelled(labels)
}

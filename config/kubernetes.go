// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Kubernetes says what the agent writes to its own pod: at least one condition, or events.
type Kubernetes struct {
	PodConditions []PodCondition // no type twice
	Events        bool
}

// PodCondition is a condition in the status of the agent's own pod.
type PodCondition struct {
	Type  string
	State string
	// Targets are the names of the targets that the condition is about; empty: all of them.
	Targets []string
}

// The states that a condition can tell: that all of its targets are in that state.
const (
	StateReady   = "ready"
	StateStarted = "started"
	StateLive    = "live"
)

// kubernetes returns the block; nil if the file has none. lines has the names of the
// targets.
func (d *decoder) kubernetes(v value, lines map[string]int) *Kubernetes {
	if !v.set() {
		return nil
	}
	o, ok := d.object(v, "podConditions", "events")
	if !ok {
		return nil
	}
	k := &Kubernetes{Events: d.boolean(o.get("events"))}
	types := map[string]int{}
	for _, item := range d.list(o.get("podConditions")) {
		if c, ok := d.podCondition(item, types, lines); ok {
			k.PodConditions = append(k.PodConditions, c)
		}
	}
	if len(k.PodConditions) == 0 && !k.Events && !d.failed() {
		d.wrong(v, "must have podConditions, or events: true")
	}
	return k
}

// podCondition returns a condition. types has the types so far, lines the names of the
// targets.
func (d *decoder) podCondition(v value, types, lines map[string]int) (PodCondition, bool) {
	o, ok := d.object(v, "type", "state", "targets")
	if !ok {
		return PodCondition{}, false
	}
	c := PodCondition{
		Type:  d.conditionType(o.get("type"), types),
		State: cmp.Or(d.enum(o.get("state"), StateReady, StateStarted, StateLive), StateReady),
	}
	names := o.get("targets")
	c.Targets = d.conditionTargets(names, lines)
	if !names.set() && len(lines) == 0 && !d.failed() {
		d.wrong(v, "there is no target whose state the condition could tell")
	}
	return c, true
}

// conditionType returns the type of a condition. types has the types so far.
func (d *decoder) conditionType(v value, types map[string]int) string {
	s, ok := d.str(v)
	first, taken := types[s]
	switch problem := conditionTypeProblem(s); {
	case !ok:
	case !v.set():
		d.wrong(v, required)
	case problem != "":
		d.wrong(v, "%s, is %s", problem, quote(s))
	case taken:
		d.wrong(v, "duplicate type %s, first on line %d", quote(s), first)
	default:
		types[s] = v.line
	}
	return s
}

// conditionTargets returns the names of a condition's targets. lines has the names that
// there are.
func (d *decoder) conditionTargets(v value, lines map[string]int) []string {
	items := d.list(v)
	if v.set() && typeName(v.node) == aList && len(items) == 0 {
		d.wrong(v, "must not be empty: leave the key out for all targets")
	}
	var names []string
	seen := map[string]int{}
	for _, item := range items {
		s, ok := d.str(item)
		_, there := lines[s]
		first, twice := seen[s]
		switch {
		case !ok:
		case !item.set():
			d.wrong(item, required)
		case twice:
			d.wrong(item, "duplicate target %s, first on line %d", quote(s), first)
		case !there:
			d.wrong(item, "there is no target %s", quote(s))
		default:
			seen[s] = item.line
			names = append(names, s)
		}
	}
	return names
}

// kubernetesDomains are the domains whose condition types belong to Kubernetes.
var kubernetesDomains = []string{"kubernetes.io", "k8s.io"}

// conditionTypeProblem returns what is wrong with the type of a condition, empty if nothing
// is. A type is a qualified name of Kubernetes, with a domain: names without one are the
// kubelet's and those of Kubernetes, today's (Ready, PodScheduled) and tomorrow's.
func conditionTypeProblem(s string) string {
	domain, name, found := strings.Cut(s, "/")
	switch {
	case !found:
		return "must be a domain, '/' and a name, such as example.org/shop-ready: types without a domain belong to the kubelet and to Kubernetes"
	case !validSubdomain(domain):
		return "the part before '/' must be a DNS name of lower-case letters, digits, '-' and '.', no more than 253 characters long"
	case !validQualifiedName(name):
		return "the part after '/' must begin and end with a letter or a digit, have only letters, digits, '-', '_' and '.', and be no more than 63 characters"
	case slices.ContainsFunc(kubernetesDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }):
		return "types of the domains kubernetes.io and k8s.io belong to Kubernetes"
	}
	return ""
}

func (k *Kubernetes) node() *yaml.Node {
	n, conditions := mapping(), list()
	for i := range k.PodConditions {
		c, condition, targets := &k.PodConditions[i], mapping(), list()
		add(condition, "type", text(c.Type))
		add(condition, "state", text(c.State))
		for _, name := range c.Targets {
			targets.Content = append(targets.Content, text(name))
		}
		addSome(condition, "targets", targets)
		conditions.Content = append(conditions.Content, condition)
	}
	addSome(n, "podConditions", conditions)
	if k.Events {
		add(n, "events", scalar("true"))
	}
	return n
}

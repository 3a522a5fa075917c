// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/gate"
)

// This file reads lists of probes of one kind.

// MaxMembers is the largest number of probes that a list may have.
const MaxMembers = 100

// The values of require beside numbers.
const (
	requireAll = "all"
	requireAny = "any"
)

// probes sets the probes of t, whose ports, environment, source and restart block are known
// already. It reports whether the file has any.
func (d *decoder) probes(o object, t *Target) (some bool) {
	single := [gate.NumKinds]**Probe{&t.StartupProbe, &t.ReadinessProbe, &t.LivenessProbe}
	for _, k := range gate.Kinds() {
		one, list := o.get(probeKeys[k]), o.get(listKeys[k])
		some = some || one.set() || list.set()
		switch {
		case one.set() && list.set():
			d.wrong(list, "must not be set together with %s", probeKeys[k])
		case one.set():
			*single[k] = d.probe(one, k, t)
		case list.set():
			if t.Several == nil {
				t.Several = new([gate.NumKinds]Probes)
			}
			t.Several[k] = d.several(list, k, t)
		}
	}
	return some
}

// probesOf returns the value with the probe or the probes of a kind.
func probesOf(o object, k gate.Kind) value {
	if v := o.get(listKeys[k]); v.set() {
		return v
	}
	return o.get(probeKeys[k])
}

// several returns a list of probes of t.
func (d *decoder) several(v value, k gate.Kind, t *Target) Probes {
	o, ok := d.object(v, "require", "probes")
	if !ok {
		return Probes{}
	}
	list := o.get("probes")
	items := d.list(list)
	switch {
	case !list.set():
		d.wrong(list, required)
	case typeName(list.node) != aList:
	case len(items) == 0:
		d.wrong(list, "must not be empty")
	case len(items) > MaxMembers:
		d.wrong(list, "must have at most %d probes, has %d", MaxMembers, len(items))
	}
	ps := Probes{Members: make([]*Probe, 0, len(items))}
	lines := make(map[string]int, len(items))
	keys := append([]string{"name"}, d.probeFields...)
	for _, item := range items {
		if o, ok := d.object(item, keys...); ok {
			name := d.name(o.get("name"), lines)
			ps.Members = append(ps.Members, d.probeOf(o, name, k, t))
		}
	}
	ps.Require = min(cmp.Or(d.require(o.get("require"), len(items)), len(items)), len(ps.Members))
	return ps
}

// require returns how many of that many members must succeed; 0 after a mistake.
func (d *decoder) require(v value, members int) int {
	switch {
	case !v.set() || typeName(v.node) == aString && v.node.Value == requireAll:
		return members
	case typeName(v.node) == aString && v.node.Value == requireAny:
		return 1
	case typeName(v.node) == aString && isNumber(v.node.Value):
		d.wrong(v, "must be all, any or a number, is a string: remove the quotes")
		return 0
	case typeName(v.node) != aNumber:
		d.wrong(v, "must be all, any or a number, is %s", mistaken(v))
		return 0
	case members == 0:
		return 0 // the empty list is the mistake
	}
	most := "must be all, any or a number from 1 to " + strconv.Itoa(members) + " (the number of probes)"
	return int(d.integer(v, 1, int64(members), most, most))
}

// mistaken returns a value that is not a number in the words of a message.
func mistaken(v value) string {
	if typeName(v.node) == aString {
		return quote(v.node.Value)
	}
	return typeName(v.node)
}

// node returns the list as the file would have it.
func (ps *Probes) node() *yaml.Node {
	n, members := mapping(), list()
	switch ps.Require {
	case len(ps.Members):
		add(n, "require", text(requireAll))
	case 1:
		add(n, "require", text(requireAny))
	default:
		add(n, "require", integer(int64(ps.Require)))
	}
	for _, p := range ps.Members {
		members.Content = append(members.Content, p.node())
	}
	add(n, "probes", members)
	return n
}

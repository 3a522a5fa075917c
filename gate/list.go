// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "slices"

// This file combines the probes of one kind. Only what they publish is combined, never an attempt.

// list is the state of several probes of one kind. Nobody changes a list that a Target has been
// returned with.
type list struct {
	require int // how many members must succeed
	params  []Params
	probes  []Probe
}

// WithList returns the state of a target before its first turn with a list of probes of one kind,
// of which require must succeed. The caller must not change params.
func (t Target) WithList(k Kind, require int, params []Params) Target {
	probes := make([]Probe, len(params))
	for i := range probes {
		probes[i].Exists = params[i].Configured
	}
	if len(params) == 1 {
		t.params[k], t.probes[k] = params[0], probes[0]
		return t
	}
	var lists [NumKinds]list
	if t.lists != nil {
		lists = *t.lists
	}
	lists[k] = list{require, params, probes}
	t.lists = &lists
	return t
}

// Combine returns what probes say together: Success if as many as are required say Success, and
// Failure if so many say Failure that this cannot be met any more.
func Combine(probes, require, succeeding, failing int) Result {
	switch {
	case succeeding >= require:
		return Success
	case failing > probes-require:
		return Failure
	}
	return Unknown
}

// says returns what the probes of a kind say together for exactly this instance. A probe that does
// not exist stands in nobody's way.
func (t *Target) says(k Kind, inst Instance) Result {
	members := t.members(k)
	succeeding, failing := 0, 0
	for i := range members {
		r, found := members[i].result(k, inst)
		switch {
		case !members[i].Exists, found && r == Success:
			succeeding++
		case found && r == Failure:
			failing++
		}
	}
	return Combine(len(members), t.require(k), succeeding, failing)
}

// hold holds all probes of a kind that have failed. Their runs begin anew.
func (t *Target) hold(k Kind, inst Instance) {
	members := t.members(k)
	for i := range members {
		if r, found := members[i].result(k, inst); found && r == Failure {
			members[i].Held, members[i].Run = true, 0
		}
	}
}

// release ends the holds after a failure of probes that do not fail together.
func (t *Target) release(k Kind) {
	members := t.members(k)
	for i := range members {
		p := &members[i]
		if p.Held && p.Result == Failure && t.says(k, Instance{ID: p.InstanceID}) != Failure {
			p.Held = false
		}
	}
}

// boots makes an instance that has taken over, and turns out to boot, not ready: the readiness of
// the instance before says nothing about this one.
func (t *Target) boots(inst Instance) {
	t.own(Readiness)
	members := t.members(Readiness)
	for i := range members {
		if p := &members[i]; p.Exists && (p.Inherited || p.InstanceID != inst.ID) {
			p.Result, p.Inherited = Readiness.initial(), false
		}
	}
}

// list returns the list of a kind; nil if the kind has one probe or none.
func (t *Target) list(k Kind) *list {
	if t.lists == nil || t.lists[k].probes == nil {
		return nil
	}
	return &t.lists[k]
}

// members returns the probes of a kind: one that does not exist if there is none.
func (t *Target) members(k Kind) []Probe {
	if l := t.list(k); l != nil {
		return l.probes
	}
	return t.probes[k : k+1]
}

// numbers returns the numbers of a probe.
func (t *Target) numbers(k Kind, i int) *Params {
	if l := t.list(k); l != nil {
		return &l.params[i]
	}
	return &t.params[k]
}

// require returns how many probes of a kind must succeed.
func (t *Target) require(k Kind) int {
	if l := t.list(k); l != nil {
		return l.require
	}
	return 1
}

// own makes the probes of a kind t's own, so that a change of them changes no other Target.
func (t *Target) own(k Kind) {
	l := t.list(k)
	if l == nil {
		return
	}
	lists := *t.lists
	lists[k].probes = slices.Clone(l.probes)
	t.lists = &lists
}

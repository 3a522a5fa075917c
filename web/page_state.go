// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// state is the state of a target as the pages show it. The worst state comes first.
type state uint8

const (
	stateHeld     state = iota // waits for a restart after failures
	stateDead                  // not live
	stateUnready               // started, and not ready
	stateDown                  // no instance runs
	stateStarting              // not started yet
	stateUnsteady              // ready, while a probe fails below its threshold
	stateReady
	numStates
)

// look is how the page shows something. Mark and word carry the same information as the
// colour of the class.
type look struct{ Class, Mark, Word string }

var looks = [numStates]look{
	stateHeld:     {"bad", "✗", "held"},
	stateDead:     {"bad", "✗", "not live"},
	stateUnready:  {"bad", "✗", "not ready"},
	stateDown:     {"off", "○", "not running"},
	stateStarting: {"wait", "…", "starting"},
	stateUnsteady: {"warn", "!", "ready, unsteady"},
	stateReady:    {"ok", "✓", "ready"},
}

func stateOf(t *prober.TargetStatus) state {
	switch {
	case !t.Running:
		return stateDown
	case heldBy(t) != nil:
		return stateHeld
	case !t.Live:
		return stateDead
	case !t.Started:
		return stateStarting
	case !t.Ready:
		return stateUnready
	case slices.ContainsFunc(t.Probes, func(p prober.ProbeStatus) bool { return p.ConsecutiveFailures > 0 && !spare(t, &p) }):
		return stateUnsteady
	default:
		return stateReady
	}
}

// heldByFailure distinguishes the hold that waits for a restart from the hold of a startup
// probe that has succeeded, and from that of a member whose list has not failed.
func heldByFailure(t *prober.TargetStatus, p *prober.ProbeStatus) bool {
	c := t.Combination(p.Kind)
	return p.Held && p.Result == gate.Failure && (c == nil || c.Result == gate.Failure)
}

// heldBy returns the first probe that waits for a restart; nil if there is none.
func heldBy(t *prober.TargetStatus) *prober.ProbeStatus {
	for i := range t.Probes {
		if p := &t.Probes[i]; heldByFailure(t, p) {
			return p
		}
	}
	return nil
}

// why returns why a target is in this state, in the words of the health endpoints. For a
// ready target it returns nothing, unless a member of a list has failed.
func (st state) why(t *prober.TargetStatus, now time.Time) string {
	switch st {
	case stateHeld:
		return whyNotLive(t).String() + ", " + waitsFor(heldBy(t), now)
	case stateDead:
		return whyNotLive(t).String()
	case stateUnready:
		return whyNotReady(t).String()
	case stateStarting:
		return whyNotStarted(t).String()
	case stateUnsteady:
		return besides(t)
	default:
		return ""
	}
}

// group is a filter: the states that it lets through.
type group struct {
	name, word string
	states     []state // nil: all
}

var groups = []group{
	{"", "All", nil},
	{"failing", "Failing", []state{stateHeld, stateDead, stateUnready, stateUnsteady}},
	{"held", "Held", []state{stateHeld}},
	{"starting", "Starting", []state{stateStarting}},
	{"down", "Not running", []state{stateDown}},
	{"ready", "Ready", []state{stateUnsteady, stateReady}},
}

func (g *group) has(st state) bool { return g.states == nil || slices.Contains(g.states, st) }

// groupOf returns the group that a query names, all if there is none of that name.
func groupOf(name string) *group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
	return &groups[max(i, 0)]
}

// terms are the terms of a search, all of which a target must match: name=value is a
// label, and any other word is a part of the name or of a label. Quotes hold a term
// together.
type terms []string

func parseTerms(q string) terms {
	quoted := false
	return strings.FieldsFunc(strings.ToLower(q), func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

// labelTerm returns the term that finds a label.
func labelTerm(name, value string) string {
	if strings.Contains(value, " ") {
		value = `"` + value + `"`
	}
	return name + "=" + value
}

func (ts terms) match(t *prober.TargetStatus) bool {
	return !slices.ContainsFunc(ts, func(term string) bool { return !matchTerm(term, t) })
}

func matchTerm(term string, t *prober.TargetStatus) bool {
	name, value, isLabel := strings.Cut(strings.ReplaceAll(term, `"`, ""), "=")
	if !isLabel && strings.Contains(strings.ToLower(t.Name), name) {
		return true
	}
	for _, l := range t.Labels {
		n, v := strings.ToLower(l.Name), strings.ToLower(l.Value)
		switch {
		case isLabel && n == name && v == value:
			return true
		case !isLabel && (strings.Contains(n, name) || strings.Contains(v, name)):
			return true
		}
	}
	return false
}

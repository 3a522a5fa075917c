// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// This file shows several probes of one kind.

// kindView is the only probe of a kind, or a list of probes.
type kindView struct {
	Kind   string
	List   *listView // nil for an only probe
	Probes []probeView
}

// listView is what the members of a list say together.
type listView struct {
	look
	Label, Count, Note string
}

// kindsOf groups the probes of a target by kind.
func kindsOf(t *prober.TargetStatus, probes []probeView) []kindView {
	out := make([]kindView, 0, gate.NumKinds)
	for _, k := range gate.Kinds() {
		first := slices.IndexFunc(t.Probes, func(p prober.ProbeStatus) bool { return p.Kind == k })
		if first < 0 {
			continue
		}
		end := first + 1
		for end < len(probes) && t.Probes[end].Kind == k {
			end++
		}
		out = append(out, kindView{Kind: k.String(), List: listOf(t, k), Probes: probes[first:end]})
	}
	return out
}

// listOf returns what the list of a kind says; nil if the kind has no list.
func listOf(t *prober.TargetStatus, k gate.Kind) *listView {
	c := t.Combination(k)
	if c == nil {
		return nil
	}
	return &listView{look: lookOfList(t, c), Label: k.String(), Count: plural(c.Members, "probe")}
}

func lookOfList(t *prober.TargetStatus, c *prober.CombinedStatus) look {
	word, blamed := c.String(), t.Blamed(c.Kind)
	switch {
	case c.Result == gate.Success && (c.Failing == 0 || c.Kind == gate.Startup):
		return look{"ok", "✓", word}
	case c.Result == gate.Success, blamed != nil && blamed.ConsecutiveFailures > 0 && c.Result != gate.Failure:
		return look{"warn", "!", word}
	case blamed != nil && blamed.ConsecutiveFailures > 0:
		return look{"bad", "✗", word}
	default:
		return look{"wait", "…", word}
	}
}

// notNeeded is the note of a spare probe.
const notNeeded = "not needed"

// spare reports whether a startup probe is a member of a list that says Success without it.
func spare(t *prober.TargetStatus, p *prober.ProbeStatus) bool {
	if p.Kind != gate.Startup || p.Result == gate.Success {
		return false
	}
	c := t.Combination(gate.Startup)
	return c != nil && c.Result == gate.Success
}

// besides says which member of a list has failed although the target is ready and live; empty if
// none has.
func besides(t *prober.TargetStatus) string {
	for _, k := range []gate.Kind{gate.Readiness, gate.Liveness} {
		if c := t.Combination(k); c != nil && c.Failing > 0 {
			return whyProbe(t, k).String()
		}
	}
	return ""
}

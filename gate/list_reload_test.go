// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
)

// reloads are what a reload may make of two and of three members: each is a list of the numbers before,
// and -1 stands for a member with a new name.
var reloads = map[int][][]int{
	2: {{0, 1}, {1, 0}, {1}, {1, -1}, {0, 1, -1}, {-1, -1}},
	3: {{0, 1, 2}, {2, 0}, {1, -1}},
}

// wrongReload returns which promise some reload breaks; "" for none. No reload changes by itself
// whether the target is started, ready or live, neither at once nor when the members then take
// turns without an outcome.
func (l *listed) wrongReload(before Target, inst Instance) string {
	for _, from := range reloads[len(l.params)] {
		var params []Params
		var origins []Origin
		for _, i := range from {
			o, p := Origin{}, Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 1}
			if i >= 0 {
				o, p = Origin{Found: true, Number: i}, l.params[i]
			}
			params, origins = append(params, p), append(origins, o)
		}
		for require := 1; require <= len(params); require++ {
			is := &listed{kind: l.kind, require: require, params: params}
			origin := func(k Kind, i int) Origin {
				if k != l.kind {
					return Origin{}
				}
				return origins[i]
			}
			after := before.Reconfigure(New([NumKinds]Params{}).WithList(l.kind, require, params), origin, inst)
			if wrong := l.differs(is, before, after, inst); wrong != "" {
				return fmt.Sprintf("%s: %v %d of %v: %+v", wrong, l.kind, require, from, after.members(l.kind))
			}
		}
	}
	return ""
}

// differs returns what a reload has changed by itself, if the members before were all there.
func (l *listed) differs(is *listed, before, after Target, inst Instance) string {
	for i := range l.params {
		if !before.Probe(l.kind, i).Exists {
			return "" // a member that has ended begins anew, as a single probe does
		}
	}
	for turns := range len(is.params) + 1 {
		switch {
		case after.Started(inst) != before.Started(inst):
			return fmt.Sprintf("started differs after %d turns", turns)
		case after.Ready(inst) != before.Ready(inst):
			return fmt.Sprintf("ready differs after %d turns", turns)
		case after.Live(inst) != before.Live(inst):
			return fmt.Sprintf("live differs after %d turns", turns)
		}
		if turns > 0 && turns < len(is.params) {
			after = is.turn(after, turns, inst)
			continue
		}
		// The holds of another instance end with the first turn for this one.
		others := slices.ContainsFunc(after.members(is.kind), func(p Probe) bool { return p.InstanceID != "" && p.InstanceID != inst.ID })
		if wrong := is.wrong(after, inst); wrong != "" && (inst.ID == "" || !others) {
			return fmt.Sprintf("%s after %d turns", wrong, turns)
		}
		if turns == 0 {
			after = is.turn(after, turns, inst)
		}
	}
	return ""
}

// turn gives a member a turn whose attempt has no outcome yet.
func (l *listed) turn(t Target, i int, inst Instance) Target {
	if inst.running() {
		t, _ = t.Next(l.kind, i, inst, t.Started(inst), epoch)
	}
	return t
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// world is a list of up to three probes of one kind, the instance as it was seen last, and which
// attempts are under way. Worlds are states of the enumeration.
type world struct {
	probes  [3]Probe
	id      string // of the instance
	phase   Phase
	pending [3]bool
}

// listed has what is the same in all worlds of one enumeration.
type listed struct {
	kind    Kind
	require int
	params  []Params
}

func (l *listed) target(w world) Target {
	return New([NumKinds]Params{}).WithList(l.kind, l.require, l.params).filled(l.kind, w.probes[:len(l.params)])
}

// filled returns the state with these states of the probes of a kind.
func (t Target) filled(k Kind, probes []Probe) Target {
	t.own(k)
	copy(t.members(k), probes)
	return t
}

// world returns a world with the probes of a target. Differences that never matter are gone: runs
// beyond the thresholds, and the IDs and times of the past.
func (l *listed) world(t Target, before world) world {
	w := before
	for i, p := range t.members(l.kind) {
		most := max(l.params[i].SuccessThreshold, l.params[i].FailureThreshold)
		if p.Run = min(p.Run, most); most == 1 {
			p.Run, p.Last = 0, Success // no run matters
		}
		if p.InstanceID != "" && p.InstanceID != w.id && w.id != "" {
			p.InstanceID = "old"
		}
		p.attemptAt = time.Time{}
		if p.Held {
			p.attemptAt = epoch
		}
		w.probes[i] = p
	}
	return w
}

// counts counts by hand how many members say Success and Failure of an instance. What has ended
// does not stand in the way of a success.
func (l *listed) counts(t Target, inst Instance) (succeeding, failing int) {
	for i := range l.params {
		p := t.Probe(l.kind, i)
		inherits := l.kind != Liveness && inst.From != "" && p.InstanceID == inst.From && p.Result == Success
		met := p.InstanceID != "" && (p.InstanceID == inst.ID || inherits)
		switch {
		case !p.Exists, met && p.Result == Success:
			succeeding++
		case met && p.Result == Failure:
			failing++
		}
	}
	return succeeding, failing
}

// wrong returns which promise a state breaks, given the view of the instance; "" for none.
func (l *listed) wrong(t Target, inst Instance) string {
	n := len(l.params)
	succeeding, failing := l.counts(t, inst)
	running := inst.Phase == Running && inst.ID != ""
	met, unmet := succeeding >= l.require, failing > n-l.require
	switch {
	case met && unmet:
		return "a list has both succeeded and failed"
	case l.kind == Startup && t.Started(inst) != (running && met), l.kind != Startup && t.Started(inst) != running:
		return "started is wrong"
	case l.kind == Readiness && t.Ready(inst) != (running && met), l.kind != Readiness && t.Ready(inst) != t.Started(inst):
		return "ready is wrong"
	case l.kind != Readiness && t.Live(inst) != (!running || !unmet), l.kind == Readiness && !t.Live(inst):
		return "live is wrong"
	}
	for i := range n {
		p := t.Probe(l.kind, i)
		own := failing
		if p.InstanceID != inst.ID {
			_, own = l.counts(t, Instance{ID: p.InstanceID})
		}
		switch {
		case p.Held && p.Result == Failure && own <= n-l.require:
			return "a failure is held although the list does not fail"
		case p.Held && l.kind == Readiness:
			return "readiness is held"
		case p.Held && p.Result == Success && l.kind == Liveness:
			return "a success holds liveness"
		case p.Held && p.Result == Failure && p.maxHold == Never && inst.MaxHold == Never:
			return "held although never"
		case p.Exists && l.kind == Startup && p.Result == Success && p.InstanceID == inst.ID && !p.Held && !p.Inherited && running && !inst.Deleting:
			return "a startup success is not held"
		case p.Held || !p.Exists || !running || inst.Deleting || inst.StartedAt.After(epoch):
			continue
		}
		// The gate is open, the instance runs, no delay is left, and nothing holds: an attempt is due.
		started := l.kind != Startup
		if v := p.next(l.kind, l.params[i].InitialDelay, inst, started, epoch); v != Attempt {
			return "nobody probes although nothing is held"
		}
	}
	return ""
}

// wrongFold returns which promise the fold of an outcome into member i breaks; "" for none.
func (l *listed) wrongFold(before, after Target, i int, r Result, inst Instance) string {
	n := len(l.params)
	_, failed := l.counts(before, inst)
	_, fails := l.counts(after, inst)
	begins := failed <= n-l.require && fails > n-l.require
	for j := range l.params {
		was, is := before.Probe(l.kind, j), after.Probe(l.kind, j)
		switch {
		case j != i && (was.Result != is.Result || was.Last != is.Last || was.InstanceID != is.InstanceID || was.Exists != is.Exists):
			return "an outcome counts for another member"
		case begins && l.kind != Readiness && is.Result == Failure && is.Exists && is.InstanceID == inst.ID && is.Held != (after.Probe(l.kind, i).maxHold != Never):
			return "the list has failed and a failed member goes on"
		case j != i && !begins && !was.Held && is.Held:
			return "another member is held although the list goes on as before"
		}
	}
	was, is := before.Probe(l.kind, i), after.Probe(l.kind, i)
	switch {
	case r == Success && fails > failed, r == Failure && fails < failed:
		return "an outcome does the opposite"
	case r == Failure && was.Result != Failure && is.Result == Failure && is.Run != 0 && l.kind != Readiness:
		return "the run goes on after a failure"
	}
	return ""
}

// views returns what a source may say.
func views(maxHold time.Duration) []Instance {
	var all []Instance
	for _, id := range []string{"new", "old"} {
		for _, v := range []Instance{
			{Phase: Waiting},
			{Phase: Terminated, Final: true},
			{Phase: Running},
			{Phase: Running, StartedAt: epoch.Add(time.Hour)},
			{Phase: Running, Deleting: true},
			{Phase: Running, From: map[string]string{"new": "old", "old": "new"}[id]},
		} {
			v.ID, v.MaxHold = id, maxHold
			all = append(all, v)
		}
	}
	return append(all, Instance{MaxHold: maxHold}, Instance{ID: "new", MaxHold: maxHold}, Instance{Final: true})
}

// next returns the worlds that one event makes of w, and what is wrong with them.
func (l *listed) next(w world, inst Instance, maxHold time.Duration) (worlds []world, wrong string) {
	before := l.target(w)
	if inst.running() && !inst.Deleting {
		revived := before
		for i := range l.params {
			if !before.Probe(l.kind, i).Exists {
				revived = revived.Restore(l.kind, i)
			}
		}
		worlds = append(worlds, l.world(revived, w))
	}
	seen := w
	if seen.id, seen.phase = inst.ID, inst.Phase; seen.id != w.id || seen.phase != w.phase {
		seen.pending = [3]bool{} // attempts of another life, or of before the end, do not count
	}
	for i := range l.params {
		if seen.pending[i] {
			for _, r := range []Result{Success, Failure} {
				after := before.Fold(l.kind, i, r)
				if wrong = l.wrongFold(before, after, i, r, inst); wrong == "" {
					wrong = l.wrong(after, inst)
				}
				if wrong != "" {
					return nil, fmt.Sprintf("%s: %v of %d into %+v gives %+v", wrong, r, i, before.members(l.kind), after.members(l.kind))
				}
				done := seen
				done.pending[i] = false
				worlds = append(worlds, l.world(after, done))
			}
			done := seen
			done.pending[i] = false
			worlds = append(worlds, l.world(before, done)) // the attempt was unknown
			continue
		}
		times := []time.Time{epoch}
		if maxHold > 0 && before.Probe(l.kind, i).Held {
			times = append(times, epoch.Add(time.Minute)) // the end of the hold
		}
		for _, now := range times {
			started := before.Started(inst)
			after, v := before.Next(l.kind, i, inst, started, now)
			if wrong = l.wrong(after, inst); wrong != "" {
				return nil, fmt.Sprintf("%s: turn %v of %d in %+v gives %+v", wrong, v, i, before.members(l.kind), after.members(l.kind))
			}
			latched := l.kind == Startup && started && inst.From == "" && inst.Phase == Running
			if latched && !after.Started(inst) {
				return nil, "started is not latched"
			}
			turned := seen
			if v == Quit {
				p := after.Probe(l.kind, i)
				after = after.Remove(l.kind, i).Adopt(l.kind, i, Instance{ID: p.InstanceID}, p.Result)
			}
			turned.pending[i] = v == Attempt
			worlds = append(worlds, l.world(after, turned))
		}
	}
	return worlds, ""
}

// Every state that two or three probes of one kind can reach together, under every number that the
// file may require, from every view of an instance, with every outcome and with attempts that
// overlap, keeps every promise. There are exactly as many states as the table says.
func TestEveryReachableStateOfAList(t *testing.T) {
	for _, tt := range []struct {
		members int
		maxHold time.Duration
		states  [NumKinds][]int // by kind and required number
	}{
		{2, UntilNewInstance, [NumKinds][]int{{1873, 2203}, {1788, 1788}, {1470, 1640}}},
		{2, Never, [NumKinds][]int{{2367, 2471}, {2070, 2070}, {1868, 1868}}},
		{2, time.Second, [NumKinds][]int{{2565, 2821}, {2070, 2070}, {2090, 2186}}},
		{3, UntilNewInstance, [NumKinds][]int{{5020, 6868, 7890}, {2330, 2330, 2330}, {3434, 4468, 4916}}},
	} {
		for _, k := range Kinds() {
			for i, states := range tt.states[k] {
				require := i + 1
				l := &listed{kind: k, require: require}
				for range tt.members {
					l.params = append(l.params, Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 1})
				}
				l.params[0].FailureThreshold = 2
				if k == Readiness {
					l.params[0].SuccessThreshold = 2
				}
				name := fmt.Sprintf("%v %d of %d", k, require, tt.members)
				t.Run(fmt.Sprintf("%s, %v", name, tt.maxHold), func(t *testing.T) {
					t.Parallel()
					if n := l.explore(t, tt.maxHold); n != states {
						t.Errorf("%d reachable states, want %d", n, states)
					}
				})
			}
		}
	}
}

// explore visits every reachable state and returns how many there are.
func (l *listed) explore(t *testing.T, maxHold time.Duration) int {
	t.Helper()
	all := views(maxHold)
	if len(l.params) > 2 {
		all = slices.DeleteFunc(all, func(i Instance) bool { return i.Final || i.Phase == Running && !i.StartedAt.IsZero() })
	}
	first := world{}
	first = l.world(New([NumKinds]Params{}).WithList(l.kind, l.require, l.params), first)
	seen, reloaded := map[world]bool{first: true}, map[world]bool{}
	queue := []world{first}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		still := w
		still.pending = [3]bool{} // a reload does not depend on what is under way
		if !reloaded[still] && w.id != "" && maxHold <= 0 {
			reloaded[still] = true
			for _, inst := range []Instance{{ID: w.id, Phase: Running}, {}, {ID: "next", Phase: Running, From: w.id}} {
				inst.MaxHold = maxHold
				if wrong := l.wrongReload(l.target(w), inst); wrong != "" {
					t.Fatalf("%s, of %+v with %+v", wrong, w, inst)
				}
			}
		}
		for _, inst := range all {
			worlds, wrong := l.next(w, inst, maxHold)
			if wrong != "" {
				t.Fatalf("%s, with %+v", wrong, inst)
			}
			for _, next := range worlds {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return len(seen)
}

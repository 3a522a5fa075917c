// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// naive is a list as a reader of the documentation would build it: of targets with a single probe,
// each of which decides for itself, and of the rules for holds.
type naive struct {
	kind    Kind
	require int
	members []Target
}

// failing counts the members that say Failure of an instance.
func (n *naive) failing(id string) (failing int) {
	for _, m := range n.members {
		if p := m.Probe(n.kind, 0); p.Exists && p.InstanceID == id && p.Result == Failure {
			failing++
		}
	}
	return failing
}

func (n *naive) failed(id string) bool { return failed(len(n.members), n.require, n.failing(id)) }

func failed(members, require, failing int) bool { return members-failing < require }

func (n *naive) next(i int, inst Instance, started bool, now time.Time) (v Verdict) {
	if n.members[i].Probe(n.kind, 0).Exists && inst.known() {
		for j := range n.members {
			n.members[j].probes[n.kind].meet(n.kind, inst)
		}
	}
	n.members[i], v = n.members[i].Next(n.kind, 0, inst, started, now)
	n.withdraw()
	return v
}

// fold folds an outcome. A single probe holds its failure if its list has failed already; if the
// list fails only now, all failed members are held.
func (n *naive) fold(i int, r Result) {
	p := &n.members[i].probes[n.kind]
	before, held, maxHold := n.failed(p.InstanceID), p.Held, p.maxHold
	if !before || held {
		p.maxHold = Never
	}
	n.members[i] = n.members[i].Fold(n.kind, 0, r)
	p = &n.members[i].probes[n.kind]
	p.maxHold = maxHold
	switch {
	case n.kind == Readiness || maxHold == Never:
	case r == Failure && held:
		p.Held = true
	case r == Failure && !before && n.failed(p.InstanceID):
		for j := range n.members {
			if q := &n.members[j].probes[n.kind]; q.Exists && q.InstanceID == p.InstanceID && q.Result == Failure {
				q.Held, q.Run = true, 0
			}
		}
	}
	n.withdraw()
}

// withdraw ends the holds of a list that does not fail.
func (n *naive) withdraw() {
	for i := range n.members {
		if p := &n.members[i].probes[n.kind]; p.Result == Failure && !n.failed(p.InstanceID) {
			p.Held = false
		}
	}
}

// Whatever happens to a list in whatever order, its members do what single probes would do, but for
// the holds, which follow the rules for lists.
func TestRandomLists(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		kind := Kind(random.IntN(NumKinds))
		members := 1 + random.IntN(4)
		require := 1 + random.IntN(members)
		maxHold := []time.Duration{UntilNewInstance, UntilNewInstance, Never, 5 * time.Second}[random.IntN(4)]
		n := &naive{kind: kind, require: require}
		var params []Params
		for range members {
			p := Params{Configured: true, SuccessThreshold: 1, FailureThreshold: 1 + random.IntN(3), InitialDelay: time.Duration(random.IntN(2)) * time.Second}
			if kind == Readiness {
				p.SuccessThreshold += random.IntN(2)
			}
			params, n.members = append(params, p), append(n.members, one(kind, p))
		}
		list := New([NumKinds]Params{}).WithList(kind, require, params)
		pending := make([]bool, members)
		id, from, now := 'a', "", epoch
		phase, deleting := Running, false
		for step := range 120 {
			now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			switch e := random.IntN(40); {
			case e == 0:
				if from = ""; random.IntN(2) == 0 {
					from = string(id)
				}
				id++
				clear(pending)
			case e == 1:
				phase = []Phase{Waiting, Terminated, PhaseUnknown}[random.IntN(3)]
				clear(pending)
			case e < 5 && phase != Running:
				phase = Running
				clear(pending)
			case e == 5:
				deleting = random.IntN(4) == 0
			}
			inst := Instance{ID: string(id), Phase: phase, From: from, MaxHold: maxHold, Deleting: deleting, StartedAt: epoch.Add(-time.Second)}
			i := random.IntN(members)
			switch {
			case pending[i]:
				r := Result(random.IntN(2))
				list = list.Fold(kind, i, r)
				n.fold(i, r)
				pending[i] = false
			default:
				started := list.Started(inst)
				var v Verdict
				peek := list.Peek(kind, i, inst, started, now)
				list, v = list.Next(kind, i, inst, started, now)
				if want := n.next(i, inst, started, now); v != want || peek != want {
					t.Fatalf("seed %d, step %d: %v, and %v before, want %v", seed, step, v, peek, want)
				}
				pending[i] = v == Attempt
			}
			for j := range members {
				if got, want := list.Probe(kind, j), n.members[j].Probe(kind, 0); got != want {
					t.Fatalf("seed %d, step %d, %v %d of %d, hold %v: member %d is\n%+v, want\n%+v", seed, step, kind, require, members, maxHold, j, got, want)
				}
			}
			if live := !inst.running() || kind == Readiness || !n.failed(inst.ID); list.Live(inst) != live {
				t.Fatalf("seed %d, step %d: live is %t", seed, step, !live)
			}
		}
	}
}

// To look at the next turn of a member allocates nothing, however long the list is: a snapshot looks
// at each.
func TestPeekAllocatesNothing(t *testing.T) {
	list := New([NumKinds]Params{}).WithList(Liveness, 1, make([]Params, 100))
	if n := testing.AllocsPerRun(100, func() { list.Peek(Liveness, 99, alive("a"), true, epoch) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

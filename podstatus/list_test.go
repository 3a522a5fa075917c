// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// member returns the snapshot of a member of a list with so many failures in a row, of which 3 make
// a Failure.
func member(k gate.Kind, name string, failures int) prober.ProbeStatus {
	p := probe(k, gate.Success, gate.Success, 3)
	if failures > 0 {
		p = probe(k, gate.Success, gate.Failure, failures)
	}
	if failures >= 3 {
		p.Result = gate.Failure
	}
	p.Name = name
	return p
}

// listed returns the snapshot of a target whose members of one kind are these.
func listed(k gate.Kind, require int, members ...prober.ProbeStatus) prober.TargetStatus {
	t := running("shop")
	c := prober.CombinedStatus{Kind: k, Require: require, Members: len(members)}
	for _, p := range members {
		switch p.Result {
		case gate.Success:
			c.Succeeding++
		case gate.Failure:
			c.Failing++
		case gate.Unknown:
		}
	}
	c.Result = gate.Combine(c.Members, c.Require, c.Succeeding, c.Failing)
	t.Probes, t.Combined = members, []prober.CombinedStatus{c}
	failed := c.Result == gate.Failure
	switch k {
	case gate.Startup:
		t.Started, t.Ready, t.Live = c.Result == gate.Success, c.Result == gate.Success, !failed
	case gate.Readiness:
		t.Ready = !failed
	case gate.Liveness:
		t.Live = !failed
	}
	return t
}

// A condition speaks of a list as a whole, and names the member that has failed.
func TestWordsOfLists(t *testing.T) {
	for _, tt := range []struct {
		target      prober.TargetStatus
		state, want string
	}{
		{listed(gate.Readiness, 1, member(gate.Readiness, "http", 0), member(gate.Readiness, "grpc", 3)), config.StateReady, ""},
		{listed(gate.Readiness, 2, member(gate.Readiness, "http", 0), member(gate.Readiness, "grpc", 3)), config.StateReady, "shop: readiness/grpc: timeout (3/3), 1 of 2, all"},
		{listed(gate.Liveness, 1, member(gate.Liveness, "http", 3), member(gate.Liveness, "grpc", 2)), config.StateLive, ""},
		{listed(gate.Liveness, 1, member(gate.Liveness, "http", 3), member(gate.Liveness, "grpc", 3)), config.StateLive, "shop: liveness/http: timeout (3/3), 0 of 2, any"},
		{listed(gate.Startup, 2, member(gate.Startup, "http", 3), member(gate.Startup, "grpc", 0), member(gate.Startup, "x", 5)), config.StateLive, "shop: startup/http: timeout (3/3), 1 of 3, 2 required"},
		{listed(gate.Startup, 2, member(gate.Startup, "http", 3), member(gate.Startup, "grpc", 0), member(gate.Startup, "x", 5)), config.StateStarted, "shop: startup/http: timeout (3/3), 1 of 3, 2 required"},
	} {
		got := wordFor(&config.PodCondition{Type: shopReady, State: tt.state}, []*prober.TargetStatus{&tt.target})
		if got.message != tt.want || got.holds != (tt.want == "") {
			t.Errorf("%s: %+v, want %q", tt.state, got, tt.want)
		}
	}
}

// The runs of members are told one by one, and an event has the name of the member.
func TestRunsOfMembersAreTold(t *testing.T) {
	fails := func(name string, began int64, failures uint64) prober.ProbeStatus {
		p := failed(gate.Readiness, began, failures, "x")
		p.Name = name
		return p
	}
	r := runs{}
	for i, tt := range []struct {
		a, b prober.ProbeStatus
		want string
	}{
		{fails("a", 1, 1), fails("b", 0, 0), "Readiness probe a failed: shop: x"},
		{fails("a", 1, 2), fails("b", 2, 1), "Readiness probe b failed: shop: x"},
		{fails("a", 1, 2), fails("b", 2, 2), ""},
		{fails("a", 1, 3), fails("b", 2, 2), "Readiness probe a failed: shop: x"},
		{fails("c", 1, 2), fails("b", 2, 2), "Readiness probe c failed: shop: x"}, // a reload has given a another name
	} {
		target := running("shop", tt.a, tt.b)
		got := ""
		for _, e := range r.events(&target, time.Now()) {
			got += e.message
		}
		if got != tt.want {
			t.Errorf("step %d: %q, want %q", i+1, got, tt.want)
		}
	}
	if n := len(r["shop"]); n != 2 {
		t.Errorf("%d probes are remembered, want the 2 that there are", n)
	}
}

// A target with a list is settled once each member that matters is.
func TestSettlingOfMembers(t *testing.T) {
	var s settling
	now := time.Now()
	quiet := probe(gate.Readiness, gate.Failure, 0, 0)
	quiet.Name = "b"
	for i, tt := range []struct {
		members []prober.ProbeStatus
		want    bool
	}{
		{[]prober.ProbeStatus{member(gate.Readiness, "a", 0), quiet}, false},
		{[]prober.ProbeStatus{member(gate.Readiness, "a", 0), member(gate.Readiness, "b", 3)}, true},
		{[]prober.ProbeStatus{member(gate.Readiness, "a", 0), member(gate.Readiness, "b", 3), member(gate.Readiness, "c", 0)}, true},
	} {
		target := listed(gate.Readiness, len(tt.members), tt.members...)
		if got := s.see(&target, true, now); got != tt.want {
			t.Errorf("step %d: settled %t, want %t", i+1, got, tt.want)
		}
	}
	quiet.Name = "d"
	added := listed(gate.Readiness, 2, member(gate.Readiness, "a", 0), quiet)
	if s.see(&added, true, now) {
		t.Error("a member that a reload has added is settled without an attempt")
	}
}

// A target with a list is settled, too, once attempts have shown what the list says, whatever the
// other members find: one that was not needed for the start makes no attempt at all, and another may
// wait for its delay.
func TestSettlingOfMembersThatDoNotMatter(t *testing.T) {
	quiet := func(k gate.Kind, result gate.Result) prober.ProbeStatus {
		p := probe(k, result, gate.Success, 0)
		p.Name, p.Gated, p.InitialDelay = "quiet", true, time.Hour
		return p
	}
	started := member(gate.Startup, "a", 0)
	started.Run, started.Held = 0, true
	recovers := probe(gate.Readiness, gate.Failure, gate.Success, 1)
	recovers.Name = "a"
	for name, tt := range map[string]struct {
		target prober.TargetStatus
		want   bool
	}{
		"started":               {listed(gate.Startup, 1, started, quiet(gate.Startup, gate.Unknown)), true},
		"not started":           {listed(gate.Startup, 2, started, quiet(gate.Startup, gate.Unknown)), false},
		"ready":                 {listed(gate.Readiness, 1, member(gate.Readiness, "a", 0), quiet(gate.Readiness, gate.Failure)), true},
		"not ready":             {listed(gate.Readiness, 2, member(gate.Readiness, "a", 3), quiet(gate.Readiness, gate.Failure)), true},
		"perhaps ready":         {listed(gate.Readiness, 2, member(gate.Readiness, "a", 0), quiet(gate.Readiness, gate.Failure)), false},
		"recovers":              {listed(gate.Readiness, 2, recovers, quiet(gate.Readiness, gate.Failure)), false},
		"live":                  {listed(gate.Liveness, 1, member(gate.Liveness, "a", 0), quiet(gate.Liveness, gate.Success)), true},
		"live by nobody's word": {listed(gate.Liveness, 1, member(gate.Liveness, "a", 3), quiet(gate.Liveness, gate.Success)), false},
	} {
		var s settling
		if got := s.see(&tt.target, true, time.Now()); got != tt.want {
			t.Errorf("%s: settled %t, want %t", name, got, tt.want)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strconv"
	"strings"
	"time"
)

// kubelet plays everything around the gate: the published status, the pod's phase and the
// restart policy.
type kubelet struct {
	*trace
	now      time.Time
	target   Target
	deleting bool
	// published is the Started flag that the workers see; publishedID is the ID of its
	// container.
	published   bool
	publishedID string
	// older says that the container is older than the kubelet. unjudged says of which
	// probes the cache has no entry for such a container yet.
	older    bool
	unjudged [NumKinds]bool
}

func (k *kubelet) tick(tick tick) (outcomes [NumKinds]string, started, ready bool) {
	k.deleting = k.deleting || strings.Contains(tick.Events, "d")
	inst := k.instance(tick) // the status
	seen := inst             // the workers' view
	if strings.ContainsAny(tick.Events, "FS") && tick.State != "0" {
		seen = Instance{Final: true} // the pod has ended
	}
	k.older = strings.Contains(tick.Events, "p")
	k.publish(inst)
	for _, kind := range Kinds() {
		outcomes[kind] = k.pass(kind, inst, seen, tick.Handlers[kind])
		if k.Eager == 1 {
			k.publish(inst)
		}
	}
	return outcomes, k.started(inst), k.ready(inst)
}

func (k *kubelet) publish(inst Instance) {
	k.published, k.publishedID = k.started(inst), inst.ID
}

// started carries over the published flag of the same container if the startup probe has no
// result for it (rule 2.5.1c).
func (k *kubelet) started(inst Instance) bool {
	carried := inst.running() && k.published && k.publishedID == inst.ID
	startup := k.target.Probe(Startup, 0)
	silent := k.unjudged[Startup] || startup.Exists && startup.InstanceID != inst.ID
	return k.target.Started(inst) || carried && silent
}

// ready adds the belief of a restarted kubelet: a container that is older than the kubelet
// stays ready until its own probe has a result (rule 2.7.4).
func (k *kubelet) ready(inst Instance) bool {
	if k.target.Ready(inst) || !k.started(inst) || !k.older {
		return k.target.Ready(inst)
	}
	readiness := k.target.Probe(Readiness, 0)
	if !readiness.Exists {
		return true
	}
	return (k.unjudged[Readiness] || readiness.InstanceID != inst.ID) && (k.Restart == nil || k.Restart.Ready)
}

func (k *kubelet) instance(tick tick) Instance {
	inst := Instance{ID: strconv.Itoa(tick.ID), Deleting: k.deleting}
	switch tick.State {
	case "r":
		inst.Phase = Running
		inst.StartedAt = k.now.Add(-time.Duration(tick.X) * time.Millisecond)
	case "w":
		inst.Phase = Waiting
	case "t":
		inst.Phase = Terminated
		inst.Final = k.Sidecar == 0 && (k.RestartPolicy == "Never" || k.RestartPolicy == "OnFailure" && tick.X == 0)
	default:
		return Instance{}
	}
	return inst
}

// pass makes one pass of a worker and formats the pass like the vectors.
func (k *kubelet) pass(kind Kind, inst, seen Instance, handler byte) string {
	if _, configured := k.Probes[kind.String()[:1]]; !configured {
		return ""
	}
	before := k.target.Probe(kind, 0)
	if !before.Exists {
		return "x"
	}
	goesOn, flag, attempts := "A", "-", "0"
	if inst.known() {
		flag = map[bool]string{true: "t", false: "f"}[k.published]
	}
	seeded := ""
	if seen.known() && seen.ID != before.InstanceID {
		seeded = k.meet(kind, seen)
	}
	met := k.target.Probe(kind, 0)
	next, verdict := k.target.Next(kind, 0, seen, k.published, k.now)
	decided := next.Probe(kind, 0)
	switch verdict {
	case Wait:
	case Attempt:
		switch attempts = "1"; handler {
		case 'S', 'W':
			next = next.Fold(kind, 0, Success)
		case 'F', 'U':
			next = next.Fold(kind, 0, Failure)
		case 'E':
			attempts = "3"
		}
	case Quit:
		goesOn = "X"
	}
	after := next.Probe(kind, 0)
	k.target = next
	if verdict == Quit {
		k.target = next.Remove(kind, 0)
	}
	updates := seeded + updates(kind, met, decided, after)
	if updates != seeded {
		k.unjudged[kind] = false
	}
	cached, hold := letter(after), "."
	if k.unjudged[kind] {
		cached = "-"
	}
	if after.Held {
		hold = "h"
	}
	if updates != "" {
		updates = ":" + updates
	}
	return goesOn + flag + attempts + cached + hold + after.Last.String()[:1] + strconv.Itoa(after.Run) + updates
}

// meet does what a kubelet does at the first sight of a container, except for the initial
// value. A container that is older than the kubelet gets no initial value. For a sidecar's
// startup probe the published Started flag counts as a success. meet returns the updates.
func (k *kubelet) meet(kind Kind, inst Instance) string {
	k.unjudged[kind] = false
	seeds := kind == Startup && k.Sidecar == 1 && k.published
	switch {
	case seeds && k.older:
		k.target = k.target.Adopt(kind, 0, inst, Success)
	case k.older:
		k.target = k.target.Adopt(kind, 0, inst, Unknown)
		k.unjudged[kind] = true
	}
	if seeds {
		return "S"
	}
	return ""
}

// letter formats a probe's entry in the results cache.
func letter(p Probe) string {
	if p.InstanceID == "" {
		return "-"
	}
	return p.Result.String()[:1]
}

// updates returns the changes of a probe's entry during a pass, in order: the initial value of
// a new container, the decision before the attempt, and the result.
func updates(kind Kind, before, decided, after Probe) (u string) {
	last := before.Result
	if decided.InstanceID != before.InstanceID {
		last = kind.initial()
		u = last.String()[:1]
	}
	for _, r := range []Result{decided.Result, after.Result} {
		if r != last {
			u += r.String()[:1]
		}
		last = r
	}
	return u
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// This file decides what is an event and what an event says. All of the file is pure.

// maxOutput is the most bytes that an event has of a probe's output.
const maxOutput = 256

// event is an event of the pod, in the words of a kubelet.
type event struct {
	target  string
	warning bool
	reason  string
	message string
	at      time.Time
}

// Act is what package restart does about a verdict, or has failed to do.
type Act struct {
	Target  string
	Kind    gate.Kind // of the probe whose Failure is the verdict
	Probe   string    // its name, if the probe is a member of a list
	Handler string    // signal, docker, systemd or exec
	// Failure says why the act has failed, without secrets; empty: the act begins.
	Failure string
}

// event returns the event of an act.
func (a Act) event(now time.Time) event {
	verdict := fmt.Sprintf("Target %s failed %s probe", a.Target, a.Kind)
	if a.Probe != "" {
		verdict += " " + a.Probe
	}
	if a.Failure != "" {
		text := output.Visible(output.Cut(a.Failure, maxOutput))
		return event{target: a.Target, warning: true, reason: "FailedKilling", message: fmt.Sprintf("%s, restart by %s failed: %s", verdict, a.Handler, text), at: now}
	}
	return event{target: a.Target, reason: "Killing", message: fmt.Sprintf("%s, will be restarted by %s", verdict, a.Handler), at: now}
}

// runs remembers which runs of failures events have told.
type runs map[string]map[probeName]told

// probeName names a probe within its target.
type probeName struct {
	kind gate.Kind
	name string // of a member of a list
}

func probeNamed(p *prober.ProbeStatus) probeName { return probeName{p.Kind, p.Name} }

// told is the last run of a probe that was told.
type told struct {
	began  time.Time
	failed bool // the result was Failure
}

// events returns the events of a target since the last snapshot: one when a run of failures
// begins, and one when the result becomes Failure. The snapshot is Full.
func (r runs) events(t *prober.TargetStatus, now time.Time) []event {
	last := r[t.Name]
	r[t.Name] = make(map[probeName]told, len(t.Probes)) // without probes that a reload has removed
	var news []event
	for i := range t.Probes {
		p := &t.Probes[i]
		was := last[probeNamed(p)]
		if p.ConsecutiveFailures == 0 || p.FirstFailure == nil {
			continue
		}
		is := told{began: p.FirstFailure.Start, failed: p.Result == gate.Failure}
		r[t.Name][probeNamed(p)] = is
		if !is.began.Equal(was.began) || is.failed && !was.failed {
			news = append(news, event{target: t.Name, warning: true, reason: "Unhealthy", message: unhealthy(t.Name, p), at: now})
		}
	}
	return news
}

// unhealthy returns the message about the last failure of a probe, as in
// "Readiness probe failed: shop: HTTP probe failed with statuscode: 500" or, of a member of a list,
// "Readiness probe grpc failed: shop: timeout".
func unhealthy(target string, p *prober.ProbeStatus) string {
	text := cmp.Or(p.LastFailureOutput(), string(p.Reason))
	probe := "probe"
	if p.Name != "" {
		probe += " " + p.Name
	}
	return fmt.Sprintf("%s %s failed: %s: %s", prober.ProbeType(p.Kind), probe, target, output.Visible(output.Cut(text, maxOutput)))
}

// forget drops the runs of targets that are not in the list any more.
func (r runs) forget(statuses []prober.TargetStatus) {
	for name := range r {
		if !slices.ContainsFunc(statuses, func(t prober.TargetStatus) bool { return t.Name == name }) {
			delete(r, name)
		}
	}
}

// The rate of events: a burst, then one a second.
const (
	burst    = 25
	eventGap = time.Second
)

// bucket allows a burst of events, and one more for each eventGap. The zero value is full.
type bucket struct {
	used time.Duration // of burst × eventGap, at the time of last
	last time.Time
}

// take reports whether an event may happen now, and counts it if so.
func (b *bucket) take(now time.Time) bool {
	b.used, b.last = max(b.used-max(now.Sub(b.last), 0), 0), now
	if b.used+eventGap > burst*eventGap {
		return false
	}
	b.used += eventGap
	return true
}

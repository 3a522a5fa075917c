// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

// words returns what the conditions should say. A condition of which a target is not settled
// has no word, and the last one in the pod stands, unless a settled target fails: that is enough
// for False.
func (r *run) words(k *config.Kubernetes, status *prober.Status, now time.Time) []word {
	if status.Stopping || r.finishing() {
		r.lacking = false
		return r.lastWords(k, status)
	}
	all := make([]*prober.TargetStatus, len(status.Statuses))
	byName := make(map[string]*prober.TargetStatus, len(all))
	for i := range status.Statuses {
		t := &status.Statuses[i]
		all[i], byName[t.Name] = t, t
		r.memory.settling.see(t, status.SourceUp[t.Source], now)
	}
	r.memory.settling.forget(status.Statuses)
	var words []word
	unsettled := false
	r.lacking = false
	for i := range k.PodConditions {
		c := &k.PodConditions[i]
		targets := all
		if len(c.Targets) > 0 {
			targets = nil
			for _, name := range c.Targets {
				targets = append(targets, byName[name])
			}
		}
		known, overdue := r.memory.settling.known(targets)
		w := wordFor(c, known)
		complete := len(known) > 0 && len(known) == len(targets)
		unsettled = unsettled || !complete
		if !complete && w.holds {
			r.lacking = r.lacking || overdue
			continue
		}
		words = append(words, w)
	}
	r.lookAgain(unsettled, now)
	return words
}

// lookAgain plans the next look while some target is not settled.
func (r *run) lookAgain(unsettled bool, now time.Time) {
	switch {
	case !unsettled:
		r.waiting = time.Time{}
		return
	case r.waiting.IsZero():
		r.waiting = now
	}
	r.lookBy(now.Add(min(max(now.Sub(r.waiting)/10, minLook), maxLook)))
}

func (r *run) finishing() bool {
	select {
	case <-r.last:
		return true
	default:
		return false
	}
}

// lastWords returns the last word of each condition; none if the pod is being deleted.
func (r *run) lastWords(k *config.Kubernetes, status *prober.Status) []word {
	p := r.o.Pod.Pod()
	if status.Terminating || p == nil || p.Metadata.DeletionTimestamp != nil {
		return nil
	}
	words := make([]word, len(k.PodConditions))
	for i := range k.PodConditions {
		words[i] = lastWord(&k.PodConditions[i])
	}
	return words
}

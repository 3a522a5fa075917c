// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	"github.com/prober-exporter/prober_exporter/kubernetes"
)

// This file decides what is written and when. All of the file but the jitter is pure.

// view returns the condition of a type that the pod has as far as the agent knows, and whether
// there is one.
type view func(kind string) (kubernetes.PodCondition, bool)

// plan returns the conditions to write, so that the pod says what the agent wants.
// lastTransitionTime moves only when the status does.
func plan(words []word, is view, now time.Time) []kubernetes.PodCondition {
	var write []kubernetes.PodCondition
	for _, w := range words {
		was, there := is(w.kind)
		c := kubernetes.PodCondition{
			Type: w.kind, Status: w.status(), Reason: w.reason, Message: w.message,
			LastTransitionTime: was.LastTransitionTime,
		}
		if there && c == was {
			continue
		}
		if c.Status != was.Status || c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = now.UTC().Truncate(time.Second) // as Kubernetes keeps it
		}
		write = append(write, c)
	}
	return write
}

// conditions returns the conditions of a pod by their types.
func conditions(p *kubernetes.Pod) map[string]kubernetes.PodCondition {
	byType := make(map[string]kubernetes.PodCondition, len(p.Status.Conditions))
	for _, c := range p.Status.Conditions {
		byType[c.Type] = c
	}
	return byType
}

// The waits after a failure.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 30 * time.Second
)

// backOff returns the wait after that many failures in a row, at least as long as the server
// asks for, and at most longestWait.
func backOff(failures int, after time.Duration) time.Duration {
	return min(max(kubernetes.BackOff(max(failures-1, 0), firstWait, longestWait), after), longestWait)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober"
)

// Over 200 random lives of a target, with restarts of the agent and writes that fail: no agent
// writes before an attempt has counted or two periods have passed, what is written is what the
// snapshot says, and lastTransitionTime is always when the status last changed in the pod.
func TestRandomLives(t *testing.T) {
	const period = time.Second
	c := &config.PodCondition{Type: shopReady, State: config.StateReady}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible
		now := time.Unix(1_000_000, 0)
		began, attempts := now, false // of this agent
		var s settling
		var pod map[string]kubernetes.PodCondition
		status, changed := "", time.Time{}
		for i := range 100 {
			now = now.Add(time.Duration(random.Int64N(int64(period))))
			if i == 0 || random.IntN(10) == 0 {
				s, began, attempts = settling{}, now, false
			}
			attempts = attempts || random.IntN(3) == 0
			p := probe(gate.Readiness, gate.Failure, 0, 0)
			if attempts {
				p = readiness(random.Uint64N(5))
			}
			target := running("shop", p)
			if !s.see(&target, true, now) {
				if attempts || now.Sub(began) >= 2*period {
					t.Fatalf("seed %d: nothing is known after %v, attempts %v", seed, now.Sub(began), attempts)
				}
				continue
			}
			if !attempts && now.Sub(began) < 2*period {
				t.Fatalf("seed %d: something is known after %v without an attempt", seed, now.Sub(began))
			}
			is := func(kind string) (kubernetes.PodCondition, bool) { was, there := pod[kind]; return was, there }
			write := plan([]word{wordFor(c, []*prober.TargetStatus{&target})}, is, now)
			if random.IntN(4) == 0 {
				continue // the write fails
			}
			for _, w := range write {
				if w.Status != status {
					status, changed = w.Status, now.UTC().Truncate(time.Second)
				}
				pod = map[string]kubernetes.PodCondition{w.Type: w}
			}
			want := map[bool]string{true: "True", false: "False"}[target.Ready]
			if got := pod[shopReady]; got.Status != want || !got.LastTransitionTime.Equal(changed) {
				t.Fatalf("seed %d: the pod says %+v, want %s since %v", seed, got, want, changed)
			}
		}
	}
}

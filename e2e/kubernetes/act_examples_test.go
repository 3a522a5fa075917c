// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"strings"
	"testing"
	"time"
)

// The agent of the example ends a dead-locked application, and the kubelet starts the container again.
// The kubelet's own probes do not notice.
func TestActSignalExample(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "signal.yaml", "^/bin/shop( |$)", "^/app$", "      command: [/bin/shop]\n", ""))
	p.restartsDeadLocked()
	if events := p.events(); strings.Contains(events, deadly) {
		t.Errorf("the kubelet ended the application:\n%s", events)
	}
}

// The kubelet ends a dead-locked application soon after the agent's verdict.
func TestActExecClientExample(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "exec-client.yaml"))
	p.restartsDeadLocked()
	if events := p.events(); !strings.Contains(events, deadly) {
		t.Errorf("the kubelet did not end the application:\n%s", events)
	}
}

// The pod follows the condition that the agent writes, and the policy of the example lets the agent
// write the condition.
func TestActReadinessGateExample(t *testing.T) {
	t.Parallel()
	p := deployIn(t, "gate", edited(t, "readiness-gate.yaml", "namespace: shop\n", "namespace: gate\n"))
	p.begins()
	for _, well := range []string{"False", "True"} {
		began := time.Now()
		p.tell("/readyz=" + map[string]string{"True": "200", "False": "503"}[well])
		p.await(20*time.Second, "the pod follows /readyz", func(s state) bool {
			return s.condition(gateType) == well && s.condition("Ready") == well
		})
		for _, c := range []string{gateType, "Ready"} {
			for _, s := range p.since(began) {
				if s.condition(c) == well {
					t.Logf("%s is %s after %.2f s", c, well, s.at.Sub(began).Seconds())
					break
				}
			}
		}
	}
}

// restartsDeadLocked checks that only the application is restarted, only once, and sooner than by a
// kubelet that waits for an agent.
func (p *pod) restartsDeadLocked() {
	t := p.t
	t.Helper()
	p.begins()
	agent := p.now().container("prober").ContainerID
	began := time.Now()
	p.tell("dead-lock=1")
	restarted := p.await(time.Minute, "the application is restarted", func(s state) bool { return s.container("app").RestartCount == 1 })
	ready := p.await(time.Minute, "the pod is ready again", state.ready)
	t.Logf("dead-locked: restarted after %.1f s, the pod is ready again after %.1f s", restarted.Sub(began).Seconds(), ready.Sub(began).Seconds())
	// The agent takes 3 × 5 s and 1 s for the last attempt, the kubelet 2 × 2 s; then a container starts.
	if d := restarted.Sub(began); d < 10*time.Second || d > 30*time.Second {
		t.Errorf("restarted after %v, want 10 s to 25 s", d)
	}
	now := p.now()
	if n := now.container("app").RestartCount; n != 1 {
		t.Errorf("the application was restarted %d times, want once", n)
	}
	if id := now.container("prober").ContainerID; id != agent {
		t.Errorf("the agent was restarted, too: %s was %s", id, agent)
	}
	if end := now.container("app").LastState.Terminated; end != nil && end.ExitCode != 3 {
		t.Errorf("the application ended with %+v, want the exit code 3 of one that is dead-locked", end)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// The condition that an agent has written outlasts the agent. But the kubelet sees that the container
// of a killed native sidecar is not ready, so the pod is not ready. An agent that comes back writes
// nothing until it knows the state of its targets.
func TestActLastWord(t *testing.T) {
	t.Parallel()
	p := deploy(t, gated.manifest())
	p.begins()
	began := time.Now()
	for crash := 1; crash <= 2; crash++ { // after the second crash the kubelet waits for 10 s
		p.signal("prober", syscall.SIGKILL)
		p.await(time.Minute, "the kubelet has noticed", func(s state) bool { return !s.ready() || s.container("prober").RestartCount == crash })
		p.await(time.Minute, "the agent is back, and the pod ready", func(s state) bool {
			return s.ready() && s.container("prober").RestartCount == crash
		})
	}
	away, unready := false, time.Duration(0)
	states := p.since(began)
	for i, s := range states {
		if s.condition(gateType) != "True" {
			t.Errorf("%s is %q %.1f s after the agent was killed", gateType, s.condition(gateType), s.at.Sub(began).Seconds())
		}
		if s.container("prober").State.Running == nil {
			away = true
			if s.ready() {
				t.Errorf("the pod is ready while its sidecar does not run")
			}
		}
		if !s.ready() && i+1 < len(states) {
			unready += states[i+1].at.Sub(s.at)
		}
	}
	if !away {
		t.Error("the kubelet never reported that the agent does not run")
	}
	if told := strings.Count(p.logs("app"), " SIGTERM "); told > 0 {
		t.Errorf("the application was told %d times to end", told)
	}
	t.Logf("the agent was killed twice: its condition was True all the time, the pod not ready for %.1f s", unready.Seconds())
}

// An application that answers 500 while it ends gets one SIGTERM, which is the kubelet's. The hook
// tells the agent, which would otherwise restart the application, that the pod terminates.
func TestActDrain(t *testing.T) {
	t.Parallel()
	if told := drainSignals(t, deploy(t, slowEnd(t))); told != 1 {
		t.Errorf("the application was told %d times to end, want once", told)
	}
}

// Without the hook the agent takes an application that ends for a dead application.
func TestActDrainWithoutHook(t *testing.T) {
	t.Parallel()
	manifest := replaced(t, slowEnd(t), "[/bin/prober_exporter, --terminating]", "[/bin/prober_exporter, --version]")
	if told := drainSignals(t, deploy(t, manifest)); told < 2 {
		t.Errorf("the application was told %d times to end: what is the hook for?", told)
	}
}

// slowEnd is a pod whose application takes 40 s to end. The agent restarts the application.
func slowEnd(t *testing.T) string {
	t.Helper()
	return replaced(t, signals.manifest(), "    image: fault:1.0\n", "    image: fault:1.0\n      env: [{name: END, value: 40s}]\n",
		"spec:\n", "spec:\n  terminationGracePeriodSeconds: 60\n")
}

// drainSignals deletes the pod and returns how often the application was told to end.
func drainSignals(t *testing.T, p *pod) (told int) {
	t.Helper()
	p.begins()
	app := p.process("app")
	p.drain(func(at time.Duration) {
		if runs(app) {
			told = max(told, strings.Count(p.logs("app"), " SIGTERM "))
		}
	})
	return told
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// An application that takes 40 s to end, and answers 500 meanwhile, gets its 40 s. Neither the kubelet
// nor the agent ends the application sooner, and the agent never says that the application is not
// live. The agent's hook runs when the termination of the pod begins, although the agent is a native
// sidecar, which ends last.
func TestDrain(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "pod.yaml", "      image: shop:1.0\n", draining, "spec:\n  initContainers:", "spec:\n  terminationGracePeriodSeconds: 60\n  initContainers:"))
	told := p.drain(func(at time.Duration) {
		if code, body := p.get(health, live+"?verbose"); code == 503 || code == 200 && at > 5*time.Second && !strings.Contains(body, "[?] pod terminating\n") {
			t.Fatalf("%s is %d %s after %v", live, code, body, at)
		}
	})
	if told > 5*time.Second {
		t.Errorf("the hook told the agent after %v", told)
	}
}

// The same for an agent that is an ordinary container: its hook runs, and the agent stops by itself.
func TestDrainClassic(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "classic-sidecar.yaml", "      image: shop:1.0\n", draining,
		"terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 60", "--shutdown.delay=28s", "--shutdown.delay=58s"))
	p.drain(func(at time.Duration) {
		if code, body := p.get(health, live); code == 503 {
			t.Fatalf("%s is %d %s after %v", live, code, body, at)
		}
	})
}

// Without the hook the agent says that an application that ends is not live. The kubelet does not ask
// any more.
func TestDrainWithoutHook(t *testing.T) {
	t.Parallel()
	const hook = "preStop: {exec: {command: [/bin/prober_exporter, --terminating]}}"
	p := deploy(t, edited(t, "pod.yaml", "      image: shop:1.0\n", draining, "spec:\n  initContainers:", "spec:\n  terminationGracePeriodSeconds: 60\n  initContainers:",
		hook, "preStop: {exec: {command: [/bin/prober_exporter, --version]}}"))
	failed := false
	p.drain(func(time.Duration) {
		code, _ := p.get(health, live)
		failed = failed || code == 503
	})
	if !failed {
		t.Errorf("%s was never 503: what is the hook for?", live)
	}
}

// draining makes the application end slowly, and fail its probes meanwhile.
const draining = "      image: shop:1.0\n      env: [{name: DRAIN, value: 40s}]\n"

// drain deletes the pod and checks that the application gets its 40 s. While the application runs,
// drain looks at the pod again and again. drain returns how long after the deletion the hook ran.
func (p *pod) drain(look func(at time.Duration)) (told time.Duration) {
	t := p.t
	t.Helper()
	p.begins()
	app, agent := p.process("app"), p.process("prober")
	began := time.Now()
	p.must("DELETE", p.path("pods/"+p.name), "")
	ended := testutil.Within(t, 2*time.Minute, "the application has ended", func() bool {
		if told == 0 && strings.Contains(p.logs("prober"), "pod terminating") {
			told = time.Since(began)
		}
		if runs(app) {
			look(time.Since(began))
		}
		return !runs(app)
	})
	t.Logf("told after %.1f s, the application ended after %.1f s", told.Seconds(), ended.Sub(began).Seconds())
	if d := ended.Sub(began); d < 40*time.Second || d > 50*time.Second {
		t.Errorf("the application ended after %v, want the 40 s that it takes", d)
	}
	if !runs(agent) {
		t.Error("the agent ended before the application")
	}
	p.await(time.Minute, "the pod is gone", func(s state) bool { return s.gone })
	for _, name := range []string{"app", "prober"} {
		if c := p.now().container(name); c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			t.Errorf("%s was restarted %d times, and ended with %+v", name, c.RestartCount, c.State.Terminated)
		}
	}
	if events := p.events(); strings.Contains(events, deadly) || strings.Contains(events, "FailedPreStopHook") {
		t.Errorf("the events:\n%s", events)
	}
	return told
}

// logs returns what a container has logged.
func (p *pod) logs(name string) string {
	files, _ := filepath.Glob("/var/log/pods/" + p.namespace + "_*/" + name + "/*.log")
	var all strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file) // the file may be gone
		all.Write(text)
	}
	return all.String()
}

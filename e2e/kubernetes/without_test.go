// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// When the agent is gone for good, the pod is not ready after 3 failed probes. The application lives
// for the 6 × 5 s that its livenessProbe allows, less the part of a period that had passed when the
// agent went. Each further life lasts as long as the startupProbe allows, here 30 × 1 s.
func TestAgentGone(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "pod.yaml", "image: prober-exporter:0.1.0", "image: "+passing+"\n      imagePullPolicy: Never",
		"failureThreshold: 330", "failureThreshold: 30"))
	p.begins()
	app := p.process("app")
	if err := ctr("images", "rm", "--sync", canonical(passing)); err != nil { // the agent cannot start again
		t.Fatal(err)
	}
	began := time.Now()
	if err := syscall.Kill(p.process("prober"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	unready := p.await(30*time.Second, "the pod is not ready", func(s state) bool { return !s.ready() })
	p.await(30*time.Second, "the agent cannot be started", func(s state) bool {
		w := s.container("prober").State.Waiting
		return w != nil && w.Reason == "ErrImageNeverPull"
	})
	told := testutil.Within(t, 2*time.Minute, "the application is told to end", func() bool {
		code, _ := p.get(8080, "/readyz")
		return code != 200
	})
	p.await(30*time.Second, "the application is restarted", func(s state) bool { return s.container("app").RestartCount == 1 })
	if events := p.events(); runs(app) || !strings.Contains(events, deadly) {
		t.Errorf("the application runs: %t; the events do not say why:\n%s", runs(app), events)
	}
	t.Logf("the agent is gone for good: the pod is not ready after %.1f s, the application is told to end after %.1f s",
		unready.Sub(began).Seconds(), told.Sub(began).Seconds())
	again := time.Now()
	testutil.Within(t, time.Minute, "the application has booted", func() bool { code, _ := p.get(8080, "/readyz"); return code == 200 })
	toldAgain := testutil.Within(t, time.Minute, "the application is told to end again", func() bool { code, _ := p.get(8080, "/readyz"); return code != 200 })
	t.Logf("in its next life the application is told to end after %.1f s", toldAgain.Sub(again).Seconds())
	if d := toldAgain.Sub(again); d < 26*time.Second || d > 34*time.Second {
		t.Errorf("the next life took %v, want 29 s to 30 s", d)
	}
	testutil.Within(t, time.Minute, "the events say why", func() bool {
		return strings.Contains(p.events(), "Container app failed startup probe, will be restarted")
	})
	if d := told.Sub(began); d < 24*time.Second || d > 36*time.Second {
		t.Errorf("the application lived for %v, want 25 s to 30 s", d)
	}
}

// While the file is broken, an agent with --config.fail-open that comes back keeps the application
// alive, though not ready. Nothing needs a restart once the file is mended.
func TestBrokenFile(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "pod.yaml", "- --config.enable-auto-reload", "- --config.enable-auto-reload\n        - --config.auto-reload-interval=1s"))
	p.begins()
	file := p.configuration()
	p.configure("targets: [{name: app, livenessProbes: {}}]")
	testutil.Within(t, 3*time.Minute, "the agent refuses the file", func() bool {
		return p.metric("prober_exporter_config_last_reload_successful") == 0
	})
	for _, path := range []string{"/ready/app", live} {
		if code, body := p.get(health, path); code != 200 {
			t.Errorf("%s is %d %s after a refused reload", path, code, body)
		}
	}
	app := p.now().container("app")
	began := time.Now()
	if err := syscall.Kill(p.process("prober"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	up := testutil.Within(t, time.Minute, "the agent is back, without a configuration", func() bool {
		_, body := p.get(health, live+"?verbose")
		return strings.Contains(body, "no configuration")
	})
	p.await(30*time.Second, "the pod is not ready", func(s state) bool { return !s.ready() })
	// Wait longer than the agent's own startup probe and then the application's liveness probe allow.
	testutil.Within(t, 3*time.Minute, "75 s pass", func() bool {
		if code, body := p.get(health, live); code != 200 {
			t.Fatalf("/live/app is %d %s after %v", code, body, time.Since(began))
		}
		return time.Since(up) > 75*time.Second
	})
	if now := p.now().container("prober"); now.RestartCount != 1 {
		t.Errorf("the agent was restarted %d times, want once", now.RestartCount)
	}
	p.configure(file)
	ready := p.await(3*time.Minute, "the pod is ready", state.ready)
	if now := p.now().container("app"); now.RestartCount != 0 || now.ContainerID != app.ContainerID {
		t.Errorf("the application was restarted: %+v", now)
	}
	t.Logf("without a configuration for %.0f s, and the application lived", ready.Sub(up).Seconds())
}

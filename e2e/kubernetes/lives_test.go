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

const (
	health = 9708
	live   = "/live/app"
)

// The pod of the example is ready only when the application's own checks pass. When the application is
// dead-locked, only the application is restarted, because of /live/app, and recovers. The agent sees
// the new instance by the listening socket. When the pod is deleted, the readiness ends first, and
// each container ends by itself before the kubelet kills anything.
func TestPod(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "pod.yaml"))
	p.checks()
	p.secured("prober")
	p.deadLock()
	p.crash()
	p.delete(true)
}

// In the shorter pod of the README, a dead-locked application is restarted soon after the agent's
// verdict.
func TestReadmePod(t *testing.T) {
	t.Parallel()
	deploy(t, readmePod(t)).restartsDeadLocked()
}

// The same for an agent that is an ordinary container.
func TestClassicSidecar(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "classic-sidecar.yaml"))
	p.checks()
	p.secured("prober")
	p.crash()
	p.delete(false)
}

// In a shared process namespace the agent sees the new instance by its process.
func TestProcessSource(t *testing.T) {
	t.Parallel()
	p := deploy(t, edited(t, "pod.yaml",
		"      - name: app\n        startupProbe:", "      - name: app\n        instance: {source: process, match: ^/app$}\n        startupProbe:",
		"spec:\n  initContainers:", "spec:\n  shareProcessNamespace: true\n  initContainers:"))
	p.begins()
	p.deadLock()
	p.crash()
}

// In a StatefulSet's pod with the Role of the example, the API server tells the agent of the new
// instance.
func TestKubernetesSource(t *testing.T) {
	t.Parallel()
	p := deployIn(t, "shop", "kind: ServiceAccount\nmetadata:\n  name: web\n---\n"+edited(t, "role.yaml")+"\n---\n"+edited(t, "pod.yaml",
		"      - name: app\n        startupProbe:", "      - name: app\n        instance: {source: kubernetes, container: app}\n        startupProbe:",
		"  name: shop\n", "  name: web-0\n", "spec:\n  initContainers:", "spec:\n  serviceAccountName: web\n  initContainers:"))
	p.begins()
	p.deadLock()
	p.crash()
}

// begins waits until the pod is ready.
func (p *pod) begins() {
	p.t.Helper()
	p.await(2*time.Minute, "the pod is ready", state.ready)
}

// checks verifies that the pod is ready only while the checks of the application pass.
func (p *pod) checks() {
	t := p.t
	t.Helper()
	p.tell("/healthz=503&/readyz=503")
	testutil.Within(t, time.Minute, "a startup attempt fails", func() bool {
		return p.metric(`prober_probe_total{probe_type="Startup",result="failed",target="app"}`) >= 1
	})
	if s := p.now(); s.container("app").Started {
		t.Error("the kubelet says that the application has started, but its /healthz is 503")
	}
	p.tell("/healthz=200")
	p.await(time.Minute, "the application has started", func(s state) bool { return s.container("app").Started })
	testutil.Within(t, time.Minute, "three readiness attempts fail", func() bool {
		return p.metric(`prober_probe_total{probe_type="Readiness",result="failed",target="app"}`) >= 3
	})
	for _, s := range p.since(time.Time{}) {
		if s.ready() {
			t.Fatal("the pod was ready while the application's checks failed")
		}
	}
	for _, well := range []bool{true, false, true} {
		began := time.Now()
		p.tell("/readyz=" + map[bool]string{true: "200", false: "503"}[well])
		ended := p.await(20*time.Second, "the pod follows /readyz", func(s state) bool { return s.ready() == well })
		t.Logf("/readyz well %t: the pod's condition follows after %.1f s", well, ended.Sub(began).Seconds())
	}
	if n := p.now().container("app").RestartCount + p.now().container("prober").RestartCount; n != 0 {
		t.Errorf("%d restarts, want none", n)
	}
}

// deadLock makes the application stop answering, and checks what follows.
func (p *pod) deadLock() {
	t := p.t
	t.Helper()
	before, pid := p.instance(), p.process("app")
	if before == "" || pid == 0 {
		t.Fatalf("instance %q, process %d before", before, pid)
	}
	agent := p.now().container("prober")
	began := time.Now()
	p.tell("dead-lock=1")
	said503 := testutil.Within(t, time.Minute, "/live/app is 503", func() bool { code, _ := p.get(health, live); return code == 503 })
	killed := testutil.Within(t, 2*time.Minute, "the dead-locked process has ended", func() bool { return !runs(pid) })
	testutil.Within(t, 30*time.Second, "the agent sees another instance", func() bool {
		id := p.instance()
		return id != "" && id != before && p.metric(`prober_target_restarts_total{target="app"}`) == 1
	})
	testutil.Within(t, 30*time.Second, "/live/app is 200", func() bool { code, _ := p.get(health, live); return code == 200 })
	ready := p.await(2*time.Minute, "the pod is ready again", state.ready)
	t.Logf("dead-locked: /live/app is 503 after %.1f s, the application ended after %.1f s, the pod is ready again after %.1f s",
		said503.Sub(began).Seconds(), killed.Sub(began).Seconds(), ready.Sub(began).Seconds())
	// The agent takes 3 × 5 s, less a part of the first 5 s, and 1 s for the last attempt; the kubelet then takes 6 × 5 s.
	if d := said503.Sub(began); d < 9*time.Second || d > 18*time.Second {
		t.Errorf("/live/app was 503 after %v, want 10 s to 16 s", d)
	}
	if d := killed.Sub(said503); d < 24*time.Second || d > 36*time.Second {
		t.Errorf("the kubelet took %v from there, want 25 s to 30 s", d)
	}
	s := p.now()
	if n := s.container("app").RestartCount; n != 1 {
		t.Errorf("the application was restarted %d times, want once", n)
	}
	if now := s.container("prober"); now.RestartCount != agent.RestartCount || now.ContainerID != agent.ContainerID {
		t.Errorf("the agent was restarted, too: %+v", now)
	}
	// The kubelet's events, below, say what killed the application. How it ended is unknown if the
	// kubelet has already removed the dead container.
	if end := s.container("app").LastState.Terminated; end != nil && end.ExitCode != 3 {
		t.Errorf("the application ended with %+v, want the exit code 3 of one that is dead-locked", end)
	}
	if n := theirCount(kubeletMetrics(t), p.namespace, "Liveness", "failed"); n < 6 || !strings.Contains(p.events(), deadly) {
		t.Errorf("according to the kubelet, %v liveness probes failed; its events:\n%s", n, p.events())
	}
}

// deadly is what a kubelet says when it restarts the application because of its livenessProbe.
const deadly = "Killing: Container app failed liveness probe, will be restarted"

// crash kills the agent, and measures how long the crash has an effect.
func (p *pod) crash() {
	t := p.t
	t.Helper()
	app, pid := p.now().container("app"), p.process("prober")
	network := networkOf(pid)
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill the agent, process %d: %v", pid, err)
	}
	testutil.Within(t, 10*time.Second, "the agent has ended", func() bool { return !runs(pid) })
	var started, healthy time.Time
	ready := testutil.Within(t, time.Minute, "/ready/app is 200", func() bool {
		if started.IsZero() {
			if inNetwork(network, "prober_exporter") { // the kubelet reports this later
				started = time.Now()
			}
		}
		if healthy.IsZero() {
			if code, _ := p.get(health, "/-/healthy"); code == 200 {
				healthy = time.Now()
			}
		}
		code, _ := p.get(health, "/ready/app")
		return code == 200
	})
	t.Logf("the agent was killed: runs again after %.2f s, answers after %.0f ms more, /ready/app is 200 after %.0f ms more",
		started.Sub(began).Seconds(), healthy.Sub(started).Seconds()*1e3, ready.Sub(healthy).Seconds()*1e3)
	if d := ready.Sub(started); d > 2*time.Second {
		t.Errorf("/ready/app took %v from the agent's start, want that of its start-up and one probe of each kind", d)
	}
	p.await(time.Minute, "the pod is ready", func(s state) bool { return s.ready() && s.container("prober").State.Running != nil })
	var lost time.Time
	for _, s := range p.since(began) {
		switch {
		case !s.ready() && lost.IsZero():
			lost = s.at
		case s.ready() && !lost.IsZero():
			d := s.at.Sub(lost)
			t.Logf("the pod was not ready for %.2f s", d.Seconds())
			if d > 10*time.Second {
				t.Errorf("the pod was not ready for %v after the agent's crash", d)
			}
			lost = time.Time{}
		}
	}
	if now := p.now().container("app"); now.RestartCount != app.RestartCount || now.ContainerID != app.ContainerID {
		t.Errorf("the application was restarted: %+v", now)
	}
	if now := p.now().container("prober"); now.RestartCount != 1 {
		t.Errorf("the agent was restarted %d times, want once", now.RestartCount)
	}
}

// delete deletes the pod, and checks the order in which its containers end. The kubelet reports ended
// containers only when all have ended, so the test looks at the processes.
func (p *pod) delete(native bool) {
	t := p.t
	t.Helper()
	appPID, agentPID := p.process("app"), p.process("prober")
	began := time.Now()
	p.must("DELETE", p.path("pods/"+p.name), "")
	testutil.Within(t, 10*time.Second, "/ready/app is 503", func() bool { code, _ := p.get(health, "/ready/app"); return code == 503 })
	app := testutil.Within(t, time.Minute, "the application has ended", func() bool {
		if code, body := p.get(health, live); code != 200 && runs(agentPID) && runs(appPID) {
			t.Fatalf("/live/app is %d %s while the application ends", code, body)
		}
		return !runs(appPID)
	})
	if !runs(agentPID) {
		t.Error("the agent ended before the application")
	}
	agent := testutil.Within(t, time.Minute, "the agent has ended", func() bool { return !runs(agentPID) })
	p.await(time.Minute, "the pod is gone", func(s state) bool { return s.gone })
	var unready time.Time
	for _, s := range p.since(began) {
		if unready.IsZero() && !s.ready() {
			unready = s.at
		}
	}
	t.Logf("deleted: not ready after %.1f s, the application ended after %.1f s, the agent after %.1f s",
		unready.Sub(began).Seconds(), app.Sub(began).Seconds(), agent.Sub(began).Seconds())
	if unready.IsZero() || !unready.Before(app) {
		t.Errorf("the application ended while the pod was still ready")
	}
	if d := app.Sub(began); d < 8*time.Second || d > 20*time.Second {
		t.Errorf("the application ended after %v, want the 8 s that it takes", d)
	}
	if d := agent.Sub(began); native && agent.Sub(app) > 5*time.Second || !native && (d < 28*time.Second || d > 30*time.Second) {
		t.Errorf("the agent ended %v after the deletion", d)
	}
	for _, name := range []string{"app", "prober"} {
		if end := p.now().container(name).State.Terminated; end == nil || end.ExitCode != 0 {
			t.Errorf("%s ended with %+v, want exit code 0", name, end)
		}
	}
}

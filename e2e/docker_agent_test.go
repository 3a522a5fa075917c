// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The shipped binary runs its probes in the container, as for a user.
func TestDockerAgent(t *testing.T) {
	w := newDockerWorld(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *dockerWorld)
	}{
		{"restart", dockerAgentRestart},
		{"hold", dockerAgentHold},
		{"crash", dockerAgentCrash},
		{"out of memory", dockerAgentOOM},
		{"pause", dockerAgentPause},
		{"daemon", dockerAgentDaemonAway},
		{"exec", dockerAgentExec},
		{"network", dockerAgentOnNetwork},
		{"joined", dockerAgentJoined},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, w) })
	}
}

const (
	restartsTotal = `prober_target_restarts_total{target="app"}`
	liveTurns     = `prober_probe_transitions_total{probe_type="Liveness",target="app"}`
	dockerUp      = `prober_exporter_source_up{source="docker"}`
)

// A docker restart is one restart: the target is not ready during the restart, but live all the
// time.
func dockerAgentRestart(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	before := a.instance(t)
	if got := a.metric(restartsTotal); got != "0" {
		t.Errorf("got %s restarts, want 0", got)
	}
	w.docker(t, "restart", "app")
	a.awaitMetric(t, restartsTotal, "1")
	a.await(t, "/ready", 200)
	if after := a.instance(t); after.ID == before.ID || after.ID[:13] != before.ID[:13] || after.Phase != "running" {
		t.Errorf("got %+v after %+v", after, before)
	}
	if got, body := a.get("/live"); got != 200 {
		t.Errorf("/live: %d %s", got, body)
	}
	t.Logf("memory: %s bytes", a.metric("process_resident_memory_bytes"))
}

// A liveness failure stays on hold until the container is restarted, and then ends.
func dockerAgentHold(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	w.docker(t, "exec", "app", "/app", "ask", "/ill")
	a.await(t, "/live", 503)
	if got := a.metric(`prober_probe_held{probe_type="Liveness",target="app"}`); got != "1" {
		t.Errorf("held is %q, want 1", got)
	}
	w.docker(t, "restart", "app")
	a.await(t, "/live", 200)
	a.await(t, "/ready", 200)
	a.awaitMetric(t, restartsTotal, "1")
}

// A crash under a restart policy is one restart, and the agent knows the exit code 3.
func dockerAgentCrash(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "--restart", "always", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	w.try("exec", "app", "/app", "ask", "/crash")
	a.awaitMetric(t, restartsTotal, "1")
	a.await(t, "/ready", 200)
	if got := a.instance(t); got.ExitCode == nil || *got.ExitCode != 3 || got.OOMKilled {
		t.Errorf("got %+v, want exit code 3", got)
	}
}

// If the kernel kills a container for its memory, the agent says so and knows the exit code
// 137.
func dockerAgentOOM(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "--restart", "always", "--memory", "32m", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	w.try("exec", "app", "/app", "ask", "/eat")
	testutil.Within(t, 30*time.Second, "it ran out of memory", func() bool {
		got := a.instance(t)
		return got.OOMKilled && got.ExitCode != nil && *got.ExitCode == 137
	})
	a.awaitMetric(t, restartsTotal, "1")
	a.await(t, "/ready", 200)
}

// A paused container is not ready, but live. After the pause the container is as before, and
// the liveness probe has not changed.
func dockerAgentPause(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	before := a.instance(t)
	w.docker(t, "pause", "app")
	a.await(t, "/ready", 503)
	attempts := a.metric(`prober_probe_total{probe_type="Liveness",result="successful",target="app"}`)
	for range 100 { // two seconds, ten periods
		dockerTick()
		if got, body := a.get("/live"); got != 200 {
			t.Fatalf("/live: %d %s", got, body)
		}
	}
	if got := a.instance(t); got.ID != before.ID || !got.Paused {
		t.Errorf("got %+v, want %s, paused", got, before.ID)
	}
	if got := a.metric(`prober_probe_total{probe_type="Liveness",result="successful",target="app"}`); got != attempts {
		t.Errorf("%s attempts, then %s: the agent probed a paused container", attempts, got)
	}
	w.docker(t, "unpause", "app")
	a.await(t, "/ready", 200)
	if turns, restarts := a.metric(liveTurns), a.metric(restartsTotal); turns != "0" || restarts != "0" {
		t.Errorf("%s changes, %s restarts; want 0, 0", turns, restarts)
	}
}

// While the daemon is away only the source's own gauge changes.
func dockerAgentDaemonAway(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	a.awaitMetric(t, dockerUp, "1")
	w.stopDaemon(t)
	a.awaitMetric(t, dockerUp, "0")
	testutil.Within(t, 30*time.Second, "attempts cannot be made", func() bool {
		return a.metric(`prober_probe_failures_total{probe_type="Liveness",reason="exec_start",target="app"}`) != ""
	})
	for _, path := range []string{"/live", "/ready"} {
		if got, body := a.get(path); got != 200 {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	w.startDaemon(t)
	a.awaitMetric(t, dockerUp, "1")
	a.await(t, "/ready", 200)
	if turns, restarts := a.metric(liveTurns), a.metric(restartsTotal); turns != "0" || restarts != "0" {
		t.Errorf("%s changes, %s restarts; want 0, 0", turns, restarts)
	}
}

// Exit code 3 is a failure, a hanging command is a timeout, and a missing command is unknown.
func dockerAgentExec(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	var targets strings.Builder
	for name, command := range map[string]string{"three": "/app, exit, '3', not well", "hang": "/app, hang", "missing": "/no/such"} {
		fmt.Fprintf(&targets, `
  - name: %s
    instance: {source: docker, container: app, socket: %q}
    readinessProbe: {exec: {command: [%s]}, periodSeconds: 0.5, timeoutSeconds: 0.5}`, name, w.socket, command)
	}
	a := w.onHost(t, targets.String()+"\n")
	for target, reason := range map[string]string{"three": "exit_code", "hang": "timeout", "missing": "exec_start"} {
		series := fmt.Sprintf(`prober_probe_failures_total{probe_type="Readiness",reason=%q,target=%q}`, reason, target)
		testutil.Within(t, 20*time.Second, series, func() bool { return a.metric(series) != "" && a.metric(series) != "0" })
	}
	if got := a.metric(`prober_probe_total{probe_type="Readiness",result="failed",target="missing"}`); got != "0" {
		t.Errorf("a missing command failed %s times, want 0", got)
	}
	if _, body := a.get("/api/v1/targets/three"); !strings.Contains(body, "not well") {
		t.Errorf("the output is missing: %s", body)
	}
}

// An agent on the network of its target reaches the target by name, and sees its restart.
func dockerAgentOnNetwork(t *testing.T, w *dockerWorld) {
	w.docker(t, "network", "create", "e2e")
	t.Cleanup(func() { w.try("network", "rm", "e2e") })
	w.run(t, "app", "--network", "e2e", "app:e2e")
	a := w.inContainer(t, `
  - name: app
    host: app
    instance: {source: docker, container: app, socket: /sock/docker.sock}
    readinessProbe: {httpGet: {port: 8080, path: /health}, periodSeconds: 0.2}
    livenessProbe: {exec: {command: [/app, ask, /health]}, periodSeconds: 0.5, timeoutSeconds: 5}
`, "--network", "e2e")
	dockerAgentRestarted(t, w, a)
}

// An agent that shares the network of a third container, which lives on, sees the restart, too.
func dockerAgentJoined(t *testing.T, w *dockerWorld) {
	w.run(t, "third", "app:e2e", "hang")
	w.run(t, "app", "--network", "container:third", "app:e2e")
	a := w.inContainer(t, `
  - name: app
    instance: {source: docker, container: app, socket: /sock/docker.sock}
    readinessProbe: {httpGet: {port: 8080, path: /health}, periodSeconds: 0.2}
    livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 0.5, failureThreshold: 5}
`, "--network", "container:third")
	dockerAgentRestarted(t, w, a)
}

// dockerAgentRestarted restarts the application under an agent in a container.
func dockerAgentRestarted(t *testing.T, w *dockerWorld, a *dockerAgent) {
	t.Helper()
	a.await(t, "/ready", 200)
	w.docker(t, "restart", "app")
	a.awaitMetric(t, restartsTotal, "1")
	a.await(t, "/ready", 200)
	a.await(t, "/live", 200)
	a.awaitMetric(t, dockerUp, "1")
}

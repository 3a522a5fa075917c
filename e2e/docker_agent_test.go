// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dockerAgent is a running prober_exporter, and how to ask it.
type dockerAgent struct {
	get func(path string) (status int, body string)
}

// dockerTarget is a target app whose probes run a command in its container.
const dockerTarget = `
  - name: app
    instance: {source: docker, container: app, socket: %q}
    startupProbe: {exec: {command: [/app, ask, /health]}, periodSeconds: 0.2, timeoutSeconds: 5, failureThreshold: 50}
    readinessProbe: {exec: {command: [/app, ask, /health]}, periodSeconds: 0.2, timeoutSeconds: 5, failureThreshold: 2}
    livenessProbe: {exec: {command: [/app, ask, /health]}, periodSeconds: 0.2, timeoutSeconds: 5, failureThreshold: 2}
`

// onHost runs the agent as a process of the machine, until the test ends.
func (w *dockerWorld) onHost(t *testing.T, targets string) *dockerAgent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prober.yml")
	if err := os.WriteFile(file, []byte("targets:"+targets), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var log strings.Builder
	agent := exec.Command(filepath.Join(w.dir, "agent", "prober_exporter"), "--config.file="+file, "--web.listen-address="+address)
	agent.Stderr = &log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Signal(syscall.SIGTERM)
		if err := agent.Wait(); err != nil || t.Failed() {
			t.Errorf("the agent ended with %v:\n%s", err, log.String())
		}
	})
	return &dockerAgent{get: func(path string) (int, string) {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}}
}

// inContainer runs the agent as nobody in a container, with the directory of the socket
// at /sock, until the test ends.
func (w *dockerWorld) inContainer(t *testing.T, targets string, args ...string) *dockerAgent {
	t.Helper()
	dir, err := os.MkdirTemp(w.dir, "config")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	if err := os.WriteFile(filepath.Join(dir, "prober.yml"), []byte("targets:"+targets), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(w.socket)
	if err != nil {
		t.Fatal(err)
	}
	group := fmt.Sprint(info.Sys().(*syscall.Stat_t).Gid)
	w.run(t, "agent", append(args, "--group-add", group, "-v", filepath.Dir(w.socket)+":/sock", "-v", dir+":/etc/prober_exporter",
		"agent:e2e")...)
	t.Cleanup(func() {
		if t.Failed() {
			out, err := w.try("logs", "agent")
			t.Logf("the agent's log: %v\n%s", err, out)
		}
	})
	return &dockerAgent{get: func(path string) (int, string) {
		body, err := w.try("exec", "agent", "/bin/prober_exporter", "--health.check=http://127.0.0.1:9709"+path)
		if err != nil {
			return http.StatusServiceUnavailable, body + err.Error()
		}
		return http.StatusOK, body
	}}
}

// await waits until a path answers with a status.
func (a *dockerAgent) await(t *testing.T, path string, want int) {
	t.Helper()
	var got int
	var body string
	dockerEventually(t, 30*time.Second, fmt.Sprintf("%s answers %d", path, want), func() bool {
		got, body = a.get(path)
		return got == want
	})
	t.Logf("%s: %d %s", path, got, strings.TrimSpace(body))
}

// metric returns the value of a series that begins so, and "" if there is none.
func (a *dockerAgent) metric(series string) string {
	_, body := a.get("/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// awaitMetric waits for a value.
func (a *dockerAgent) awaitMetric(t *testing.T, series, want string) {
	t.Helper()
	dockerEventually(t, 30*time.Second, series+" is "+want, func() bool { return a.metric(series) == want })
}

// instance is what /api/v1/targets/app says of the instance.
type dockerInstance struct {
	ID, Phase string
	ExitCode  *int `json:"exit_code"`
	OOMKilled bool `json:"oom_killed"`
	Paused    bool
}

func (a *dockerAgent) instance(t *testing.T) dockerInstance {
	t.Helper()
	var target struct{ Instance dockerInstance }
	_, body := a.get("/api/v1/targets/app")
	if err := json.Unmarshal([]byte(body), &target); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return target.Instance
}

// The shipped binary with its probes in the container, as a user would have it.
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

// docker restart is 1 restart: not ready while it is away, live all the time.
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

// A liveness failure is held until the container is restarted, and then it is over.
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

// A crash under a restart policy is 1 restart, and its exit code is known: 3.
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

// One that is killed for its memory is known to be: exit code 137.
func dockerAgentOOM(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "--restart", "always", "--memory", "32m", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	w.try("exec", "app", "/app", "ask", "/eat")
	dockerEventually(t, 30*time.Second, "it ran out of memory", func() bool {
		got := a.instance(t)
		return got.OOMKilled && got.ExitCode != nil && *got.ExitCode == 137
	})
	a.awaitMetric(t, restartsTotal, "1")
	a.await(t, "/ready", 200)
}

// A paused container is not ready, and live; that is over with the pause, 0 changes of
// the liveness probe later.
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
		t.Errorf("%s attempts, then %s: it was probed", attempts, got)
	}
	w.docker(t, "unpause", "app")
	a.await(t, "/ready", 200)
	if turns, restarts := a.metric(liveTurns), a.metric(restartsTotal); turns != "0" || restarts != "0" {
		t.Errorf("%s changes, %s restarts; want 0, 0", turns, restarts)
	}
}

// While the daemon is away nothing changes but the source's own gauge.
func dockerAgentDaemonAway(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.onHost(t, fmt.Sprintf(dockerTarget, w.socket))
	a.await(t, "/ready", 200)
	a.awaitMetric(t, dockerUp, "1")
	w.stopDaemon(t)
	a.awaitMetric(t, dockerUp, "0")
	a.awaitMetric(t, `prober_probe_failures_total{probe_type="Liveness",reason="exec_start",target="app"}`,
		a.metric(`prober_probe_total{probe_type="Liveness",result="unknown",target="app"}`))
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

// Exit code 3 is a failure, and a hanging command a timeout; a missing one is unknown.
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
		dockerEventually(t, 20*time.Second, series, func() bool { return a.metric(series) != "" && a.metric(series) != "0" })
	}
	if got := a.metric(`prober_probe_total{probe_type="Readiness",result="failed",target="missing"}`); got != "0" {
		t.Errorf("a missing command failed %s times, want 0", got)
	}
	if _, body := a.get("/api/v1/targets/three"); !strings.Contains(body, "not well") {
		t.Errorf("the output is not there: %s", body)
	}
}

// An agent on the same network as its target reaches it by name, and sees its restart.
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

// So does one that shares the network of a third container, which lives on.
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

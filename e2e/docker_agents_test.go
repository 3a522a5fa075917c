// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// dockerAgent is a running prober_exporter.
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

// onHost runs the agent as a process of the machine until the test ends.
func (w *dockerWorld) onHost(t *testing.T, targets string) *dockerAgent {
	t.Helper()
	file := testutil.Write(t, "targets:"+targets)
	address := "127.0.0.1:" + testutil.Port(t)
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
		return testutil.Get(t, "http://"+address+path)
	}}
}

// inContainer runs the agent as nobody in a container until the test ends. The directory of the
// socket is at /sock.
func (w *dockerWorld) inContainer(t *testing.T, targets string, args ...string) *dockerAgent {
	t.Helper()
	dir, err := os.MkdirTemp(w.dir, "config") //nolint:usetesting // containers have to see it
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
	testutil.Within(t, 30*time.Second, fmt.Sprintf("%s answers %d", path, want), func() bool {
		got, body = a.get(path)
		return got == want
	})
	t.Logf("%s: %d %s", path, got, strings.TrimSpace(body))
}

// metric returns the value of a series, or "" if there is no such series.
func (a *dockerAgent) metric(series string) string {
	_, body := a.get("/metrics")
	return testutil.Series(body, series)
}

// awaitMetric waits until a series has a value.
func (a *dockerAgent) awaitMetric(t *testing.T, series, want string) {
	t.Helper()
	testutil.Within(t, 30*time.Second, series+" is "+want, func() bool { return a.metric(series) == want })
}

// dockerInstance is the instance in /api/v1/targets/app.
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

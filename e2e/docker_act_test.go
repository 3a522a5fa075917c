// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The agent restarts a container through the Engine.
func TestDockerAct(t *testing.T) { dockerActs(t, newDockerWorld(t)) }

// So does Podman's service.
func TestDockerActPodman(t *testing.T) { dockerActs(t, newPodmanWorld(t)) }

func dockerActs(t *testing.T, w *dockerWorld) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *dockerWorld)
	}{
		{"back-off", dockerActBackOff},
		{"stopped", dockerActStopped},
		{"being stopped", dockerActBeingStopped},
		{"killed", dockerActKilled},
		{"ends", dockerActEnds},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, w) })
	}
}

// dockerActor is an agent that restarts the container app.
type dockerActor struct {
	*dockerAgent
	t   *testing.T
	cmd *exec.Cmd
	log testutil.Log
}

// acting starts an agent with these back-offs and this grace period in seconds.
func (w *dockerWorld) acting(t *testing.T, backOff, grace string) *dockerActor {
	t.Helper()
	file := testutil.Write(t, "targets:"+fmt.Sprintf(dockerTarget, w.socket)+fmt.Sprintf(`
    restart: {docker: {}, backOff: {initialSeconds: %[1]s, maxSeconds: %[1]s}, terminationGracePeriodSeconds: %[2]s}
`, backOff, grace))
	address := "127.0.0.1:" + testutil.Port(t)
	a := &dockerActor{t: t, dockerAgent: &dockerAgent{get: func(path string) (int, string) {
		return testutil.Get(t, "http://"+address+path)
	}}}
	a.cmd = exec.Command(filepath.Join(w.dir, "agent", "prober_exporter"), "--config.file="+file, "--web.listen-address="+address)
	a.cmd.Stderr = &a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the agent said:\n%s", a.log.String())
		}
	})
	a.await(t, "/ready", 200)
	return a
}

// end ends the agent.
func (a *dockerActor) end(signal syscall.Signal) {
	if a.cmd.ProcessState == nil {
		a.cmd.Process.Signal(signal)
		a.cmd.Wait()
	}
}

// logs waits until the log has n lines with that text.
func (a *dockerActor) logs(n int, text string) {
	a.t.Helper()
	testutil.Within(a.t, 30*time.Second, fmt.Sprintf("%d times %q in the log", n, text), func() bool { return a.log.Count(text) >= n })
}

// life returns when the container app started, and whether it runs.
func (w *dockerWorld) life(t *testing.T) (started time.Time, runs bool) {
	t.Helper()
	at, status, _ := strings.Cut(w.docker(t, "inspect", "--format", "{{.State.StartedAt}} {{.State.Status}}", "app"), " ")
	started, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	return started, status == "running"
}

// stays checks for so long that the container app does not run.
func (w *dockerWorld) stays(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); dockerTick() {
		if _, runs := w.life(t); runs {
			t.Fatal("somebody has started the container")
		}
	}
}

// isStopping reports whether the container app has got its stop signal. Podman tells no such event,
// but has a status for it.
func (w *dockerWorld) isStopping(t *testing.T) bool {
	if w.podman {
		return w.docker(t, "inspect", "--format", "{{.State.Status}}", "app") == "stopping"
	}
	id := w.docker(t, "inspect", "--format", "{{.Id}}", "app") // an earlier container had the name
	return w.docker(t, "events", "--since", "60s", "--until", "0s", "--filter", "container="+id, "--filter", "event=kill") != ""
}

// A container that hangs is restarted once per back-off.
func dockerActBackOff(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.acting(t, "4", "2")
	first, _ := w.life(t)
	var lives []time.Time
	for range 2 {
		w.docker(t, "exec", "app", "/app", "ask", "/ill")
		testutil.Within(t, 30*time.Second, "the next life", func() bool {
			started, runs := w.life(t)
			return runs && started.After(first)
		})
		first, _ = w.life(t)
		lives = append(lives, first)
		a.awaitMetric(t, restartsTotal, fmt.Sprint(len(lives)))
		a.await(t, "/ready", 200)
	}
	if apart := lives[1].Sub(lives[0]); apart < 3900*time.Millisecond {
		t.Errorf("the restarts are %v apart, want 4s", apart)
	}
	if n := a.log.Count("restarting the target"); n != 2 {
		t.Errorf("%d restarts, want 2", n)
	}
}

// A container that somebody has stopped is not started.
func dockerActStopped(t *testing.T, w *dockerWorld) {
	w.run(t, "app", "app:e2e")
	a := w.acting(t, "0.5", "2")
	w.docker(t, "stop", "app")
	w.stays(t, 5*time.Second)
	if n := a.log.Count("restarting the target"); n != 0 {
		t.Errorf("%d restarts, want 0", n)
	}
}

// A container that fails its probe while somebody stops it is left alone.
func dockerActBeingStopped(t *testing.T, w *dockerWorld) {
	if w.podman {
		return // it runs no command in such a container, a probe's neither
	}
	w.run(t, "app", "app:e2e")
	a := w.acting(t, "0.5", "2")
	w.docker(t, "exec", "app", "/app", "ask", "/deaf")
	stopped := make(chan error, 1)
	go func() {
		_, err := w.try("stop", "--time", "8", "app")
		stopped <- err
	}()
	a.until("docker stop has sent its signal", func() bool { return w.isStopping(t) })
	w.docker(t, "exec", "app", "/app", "ask", "/ill")
	a.logs(1, "somebody is stopping the instance")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	w.stays(t, 3*time.Second)
	if n := a.log.Count("restarting the target"); n != 0 {
		t.Errorf("%d restarts, want 0", n)
	}
}

// until waits for a condition.
func (a *dockerActor) until(what string, holds func() bool) {
	a.t.Helper()
	testutil.Within(a.t, 30*time.Second, what, holds)
}

// An agent that is killed in the middle of a restart leaves the container running: the Engine
// finishes.
func dockerActKilled(t *testing.T, w *dockerWorld) { dockerActGone(t, w, syscall.SIGKILL) }

// So does an agent that is asked to end, which takes no longer than 10 s.
func dockerActEnds(t *testing.T, w *dockerWorld) { dockerActGone(t, w, syscall.SIGTERM) }

func dockerActGone(t *testing.T, w *dockerWorld, signal syscall.Signal) {
	w.run(t, "app", "app:e2e")
	a := w.acting(t, "0.5", "8")
	was, _ := w.life(t)
	w.docker(t, "exec", "app", "/app", "ask", "/deaf")
	w.docker(t, "exec", "app", "/app", "ask", "/ill")
	a.logs(1, "restarting the target")
	a.until("the Engine has sent the signal", func() bool { return w.isStopping(t) })
	began := time.Now()
	a.end(signal)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the agent took %v to end", took)
	}
	if now, _ := w.life(t); !now.Equal(was) {
		t.Errorf("the container started at %v, want the old life", now)
	}
	a.until("the container runs anew", func() bool {
		started, runs := w.life(t)
		return runs && started.After(was)
	})
}

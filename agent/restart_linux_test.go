// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// These tests show restarts as the default source sees them. They kill an application in a
// process of its own and start it again beside the agent, and somebody asks /live/app all the
// time.

// An app dead-locks, and a signal kills it. /live/app answers 503 until then, and the agent
// makes no attempt while the probe is held. At the end of the app /live/app answers 200, and
// stays 200 during the next boot. The startup probe gates again, and the agent counts one
// restart.
func TestRestartOfADeadlock(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    startupProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.1, failureThreshold: 100}
    livenessProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.2, timeoutSeconds: 0.2, failureThreshold: 3}
`, port)))
	a.Says(a.Health+"/started/app", 200, "ok")
	live := watchURL(t, a.Health+"/live/app")
	v.tell("lock")
	a.Says(a.Health+"/live/app", 503, "liveness: timeout (3/3)")
	testutil.Wait(t, time.Second)
	a.Is(a.Health+"/live/app", 503, "")
	if got := a.Metric(`prober_probe_total{probe_type="Liveness",result="failed",target="app"}`); got != "3" {
		t.Errorf("%s attempts have failed a second after the probe was held, want 3", got)
	}

	v.kill()
	next := startVictim(t, victimPlan{Ports: []string{port}, Boot: -1})
	a.Says(a.Health+"/live/app", 200, "")
	a.Says(a.Health+"/started/app", 503, "not running")
	next.tell("open")
	a.Says(a.Health+"/started/app", 200, "")
	testutil.Wait(t, 500*time.Millisecond)
	seen := live.stop()
	if got := statuses(seen); got != "200 503 200" {
		t.Fatalf("/live/app answered %s, want 200 503 200", got)
	}
	if got := a.Metric(`prober_target_restarts_total{target="app"}`); got != "1" {
		t.Errorf("%s restarts, want 1", got)
	}
	if got := a.Metric(`prober_target_startup_duration_seconds{target="app"}`); got == "" {
		t.Error("the startup of the new instance has no duration")
	}
	a.Is(a.Web+"/api/v1/targets/app", 200, `"source":"listener"`)
	a.Is(a.Web+"/metrics", 200, `prober_target_info{instance_id="socket-`)
	a.Is(a.Web+"/metrics", 200, `prober_exporter_source_up{source="listener"} 1`)
	a.Logs("instance source chosen", "source=listener", "host 127.0.0.1 is local")
}

// An app crashes while no probe is held. /live/app is never 503, although one failure would be
// enough, and /ready/app is 503 until the app is back.
func TestRestartOfACrash(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    startupProbe: {tcpSocket: {port: %[1]s}, periodSeconds: 0.1, failureThreshold: 100}
    readinessProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.1, timeoutSeconds: 10, failureThreshold: 1}
    livenessProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.05, timeoutSeconds: 10, failureThreshold: 1}
`, port)))
	a.Says(a.Health+"/ready/app", 200, "ok")
	countsRestarts(t, a, v, victimPlan{Ports: []string{port}, Boot: time.Second}, "not running")
}

// A boot hangs after a restart. 503 comes no earlier than maxHoldSeconds and the whole startup
// budget after the end. When the hanging boot is killed and the next boot listens, the next
// instance begins anew.
func TestRestartIntoAHungBoot(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    instance: {source: auto, maxHoldSeconds: 1}
    startupProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.1, failureThreshold: 5}
    livenessProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.1, failureThreshold: 1}
`, port)))
	a.Says(a.Health+"/started/app", 200, "ok")
	live := watchURL(t, a.Health+"/live/app")
	killed := time.Now()
	v.kill()
	hung := startVictim(t, victimPlan{Boot: -1})
	a.Says(a.Health+"/live/app", 503, "startup: connection_refused (5/5)")
	hung.kill()
	startVictim(t, victimPlan{Ports: []string{port}})
	a.Says(a.Health+"/live/app", 200, "")
	a.Says(a.Health+"/started/app", 200, "")
	testutil.Wait(t, 200*time.Millisecond)
	seen := live.stop()
	if got := statuses(seen); got != "200 503 200" {
		t.Fatalf("/live/app answered %s, want 200 503 200", got)
	}
	if after := seen[1].at.Sub(killed); after < 1400*time.Millisecond {
		t.Errorf("503 came %v after the end, want 1s and 5 probes at least", after)
	}
}

// If the agent may see processes, the failures of a process that runs but has closed its listener
// count at once, and not only after maxHoldSeconds.
func TestListenerClosed(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    instance: {maxHoldSeconds: 3600}
    livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 3}
`, port)))
	a.Says(a.Web+"/metrics", 200, `prober_probe_total{probe_type="Liveness",result="successful",target="app"} 3`)
	v.tell("close")
	a.Says(a.Health+"/live/app", 503, "liveness: connection_refused (3/3)")
}

// If another process keeps the port open, the agent sees no restart. No probe stays on hold for
// longer than maxHoldSeconds.
func TestRestartBehindAProxy(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	go forward(proxy, "127.0.0.1:"+port)
	_, front, _ := net.SplitHostPort(proxy.Addr().String())

	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    instance: {maxHoldSeconds: 1}
    livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.1, timeoutSeconds: 0.2, failureThreshold: 3}
`, front)))
	a.Says(a.Health+"/live/app", 200, "ok")
	v.tell("lock")
	a.Says(a.Health+"/live/app", 503, "timeout (3/3)")
	live := watchURL(t, a.Health+"/live/app")
	v.kill()
	startVictim(t, victimPlan{Ports: []string{port}})
	a.Says(a.Health+"/live/app", 200, "ok")
	testutil.Wait(t, 500*time.Millisecond)
	if got := statuses(live.stop()); got != "503 200" {
		t.Errorf("/live/app answered %s, want 503 200", got)
	}
	if got := a.Metric(`prober_target_restarts_total{target="app"}`); got != "0" {
		t.Errorf("%s restarts, want 0, because the agent can see none", got)
	}
}

// forward passes every connection on to address.
func forward(l net.Listener, address string) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer server.Close()
			go func() { _, _ = io.Copy(server, client) }()
			_, _ = io.Copy(client, server)
		}()
	}
}

// An agent starts again beside a healthy app. /live is never 503. The app is older than the
// agent, so no initial delay runs again. The instance keeps its ID.
func TestRestartOfTheAgent(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	startVictim(t, victimPlan{Ports: []string{port}})
	served(t, port)
	file := testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    startupProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 3600, periodSeconds: 60}
    readinessProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 3600, periodSeconds: 60}
    livenessProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 3600, periodSeconds: 60, failureThreshold: 1}
`, port))
	a := start(t, file)
	a.Says(a.Health+"/ready/app", 200, "ok")
	_, before := testutil.Get(t, a.Web+"/metrics")
	a.Stop()

	a = start(t, file)
	live := watchURL(t, a.Health+"/live/app")
	a.Says(a.Health+"/ready/app", 200, "ok")
	for _, kind := range []string{"Startup", "Readiness", "Liveness"} {
		a.Says(a.Web+"/metrics", 200, `prober_probe_total{probe_type="`+kind+`",result="successful",target="app"} 1`)
	}
	if got := statuses(live.stop()); got != "200" {
		t.Errorf("/live/app answered %s, want 200 all the time", got)
	}
	if is := a.Metric(infoLine.FindString(before)); is != "1" {
		t.Errorf("%q is %q after a restart of the agent", infoLine.FindString(before), is)
	}
}

// Readiness asks one port, liveness another, gRPC a third. A restart of all three counts once.
func TestRestartOfThreePorts(t *testing.T) {
	t.Parallel()
	ports := testutil.Ports(t, 3)
	plan := victimPlan{Ports: ports[:2], GRPC: ports[2]}
	v := startVictim(t, plan)
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    startupProbe: {grpc: {port: %s}, periodSeconds: 0.1, failureThreshold: 100}
    readinessProbe: {httpGet: {port: %s}, periodSeconds: 0.1}
    livenessProbe: {tcpSocket: {port: %s}, periodSeconds: 0.1, failureThreshold: 1}
`, ports[2], ports[0], ports[1])))
	a.Says(a.Health+"/ready/app", 200, "ok")
	countsRestarts(t, a, v, plan, "")
}

// If somebody declares a restart of an app that does not listen, the next instance begins at
// once.
func TestDeclaredWhileEnded(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 3}
`, port)), withRequests)
	a.Says(a.Web+"/metrics", 200, `prober_probe_total{probe_type="Liveness",result="successful",target="app"} 1`)
	v.kill()
	a.Says(a.Web+"/metrics", 200, `prober_target_running{target="app"} 0`)
	if status, body := testutil.Do(t, http.MethodPost, a.Web+"/api/v1/targets/app/new-instance"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	a.Is(a.Web+"/metrics", 200, `prober_target_running{target="app"} 1`)
	a.Says(a.Health+"/live/app", 503, "connection_refused (3/3)")
	startVictim(t, victimPlan{Ports: []string{port}})
	a.Says(a.Health+"/live/app", 200, "")
}

// countsRestarts kills an application and starts it again by a plan, three times. In between
// the target is not ready but always live, and the agent counts each restart. /ready/app
// contains why in between.
func countsRestarts(t *testing.T, a *agenttest.Agent, v *victim, plan victimPlan, why string) {
	t.Helper()
	live := watchURL(t, a.Health+"/live/app")
	for restart := range 3 {
		v.kill()
		a.Says(a.Health+"/ready/app", 503, why)
		v = startVictim(t, plan)
		a.Says(a.Health+"/ready/app", 200, "ok")
		if got, want := a.Metric(`prober_target_restarts_total{target="app"}`), fmt.Sprint(restart+1); got != want {
			t.Errorf("%s restarts, want %s", got, want)
		}
	}
	if got := statuses(live.stop()); got != "200" {
		t.Errorf("/live/app answered %s, want 200 all the time", got)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// Sockets alone do not show whether an instance handed over or was restarted, whether a target
// boots or has ended for good, or which of two sockets is the target's.

// One process hands its port over to another, and no attempt fails. /ready/app answers 200 all
// the time, although every probe has a delay: startup and readiness make their attempts at
// once.
func TestHandOverOfAPort(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	old := startVictim(t, victimPlan{Ports: []string{port}})
	served(t, port)
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    startupProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 3600, periodSeconds: 3600}
    readinessProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 3600, periodSeconds: 3600}
    livenessProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 3600, periodSeconds: 3600}
`, port)))
	a.Says(a.Health+"/ready/app", 200, "ok")
	attempts := func(kind string, n int) {
		t.Helper()
		a.Says(a.Web+"/metrics", 200, fmt.Sprintf(`prober_probe_total{probe_type="%s",result="successful",target="app"} %d`, kind, n))
	}
	attempts("Liveness", 1)
	ready := watchURL(t, a.Health+"/ready/app")
	for roll := range 3 {
		young := startVictim(t, victimPlan{Ports: []string{port}, Boot: -1})
		before := instanceID(t, a)
		old.tell("close")
		refused(t, port)
		young.tell("open")
		a.Logs("instance handed over", "from="+before)
		attempts("Startup", roll+2)
		attempts("Readiness", roll+2)
		old = young
	}
	if got := statuses(ready.stop()); got != "200" {
		t.Errorf("/ready/app answered %s, want 200 all the time", got)
	}
	attempts("Liveness", 1)
	if got := a.Metric(`prober_target_restarts_total{target="app"}`); got != "0" {
		t.Errorf("%s restarts, want 0", got)
	}
}

// A target that has ended and does not come back is not running but stays live, however long
// ago it ended. When a kubelet asks, the agent takes the container as running again, and judges
// a boot that hangs.
func TestEndForGood(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	v := startVictim(t, victimPlan{Ports: []string{port}})
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    instance: {maxHoldSeconds: 0.2}
    livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 3}
  - name: clock
    livenessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
`, port)))
	a.Says(a.Web+"/metrics", 200, `prober_probe_total{probe_type="Liveness",result="successful",target="app"} 1`)
	live := watchURL(t, a.Health+"/live/app")
	v.kill()
	a.Says(a.Web+"/metrics", 200, `prober_target_running{target="app"} 0`)
	a.Says(a.Web+"/metrics", 200, `prober_probe_total{probe_type="Liveness",result="successful",target="clock"} 5`)
	if got := statuses(live.stop()); got != "200" {
		t.Errorf("/live/app answered %s, want 200 all the time", got)
	}
	a.Is(a.Web+"/metrics", 200, `prober_target_running{target="app"} 0`)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Health+"/live/app", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "kube-probe/1.36")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	a.Says(a.Health+"/live/app", 503, "connection_refused (3/3)")
	startVictim(t, victimPlan{Ports: []string{port}})
	a.Says(a.Health+"/live/app", 200, "")
	if got := a.Metric(`prober_target_restarts_total{target="app"}`); got != "1" {
		t.Errorf("%s restarts, want 1", got)
	}
}

// The agent does not judge a first boot that never listens before 20 s and the probe's own
// delay are over. Then the boot fails, and its first socket takes the failure back.
func TestFirstBootThatHangs(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	begin := time.Now()
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    readinessProbe: {httpGet: {port: %[1]s}, periodSeconds: 0.1}
    livenessProbe: {httpGet: {port: %[1]s}, initialDelaySeconds: 1, periodSeconds: 0.1, failureThreshold: 3}
`, port)))
	a.Logs("the agent does not see the first boot before the target listens", "/live/app")
	ended := time.NewTimer(90 * time.Second)
	defer ended.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for status := 200; status == 200; {
		select {
		case <-poll.C:
			status, _ = testutil.Get(t, a.Health+"/live/app")
		case <-ended.C:
			t.Fatal("/live/app is still 200 after 90 s")
		}
	}
	if after := time.Since(begin); after < 21*time.Second {
		t.Errorf("503 came %v after the agent's start, want 21 s at least", after)
	}
	a.Is(a.Health+"/live/app", 503, "connection_refused (3/3)")
	startVictim(t, victimPlan{Ports: []string{port}})
	a.Says(a.Health+"/ready/app", 200, "ok")
	a.Is(a.Health+"/live/app", 200, "ok")
	if got := a.Metric(`prober_target_restarts_total{target="app"}`); got != "0" {
		t.Errorf("%s restarts, want 0", got)
	}
}

// A socket of another program on the same port, for IPv6 only, does not belong to the target:
// the agent still sees the restart of the target.
func TestNeighbourOnIPv6(t *testing.T) {
	t.Parallel()
	port := testutil.Port(t)
	startVictim(t, victimPlan{Ports: []string{port}, V6: true})
	v := startVictim(t, victimPlan{Ports: []string{port}})
	served(t, port)
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    readinessProbe: {httpGet: {port: %s}, periodSeconds: 0.1}
`, port)))
	a.Says(a.Health+"/ready/app", 200, "ok")
	v.kill()
	a.Says(a.Health+"/ready/app", 503, "not running")
	startVictim(t, victimPlan{Ports: []string{port}})
	a.Says(a.Health+"/ready/app", 200, "ok")
	if got := a.Metric(`prober_target_restarts_total{target="app"}`); got != "1" {
		t.Errorf("%s restarts, want 1", got)
	}
}

// served waits until somebody serves a port.
func served(t *testing.T, port string) {
	t.Helper()
	testutil.Eventually(t, "the app serves", func() error {
		if status, body := testutil.Get(t, "http://127.0.0.1:"+port); status != 200 {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}

// refused waits until nobody listens on a port.
func refused(t *testing.T, port string) {
	t.Helper()
	testutil.Eventually(t, "nobody listens", func() error {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			return errors.Join(errors.New("somebody listens"), conn.Close())
		}
		return nil
	})
}

// instanceID returns the agent's ID of the instance.
func instanceID(t *testing.T, a *agenttest.Agent) string {
	t.Helper()
	_, body := testutil.Get(t, a.Web+"/metrics")
	_, after, _ := strings.Cut(infoLine.FindString(body), `instance_id="`)
	id, _, _ := strings.Cut(after, `"`)
	return id
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// Two servers are probed for liveness. With any, one of them may fail. A reload demands all: the
// target fails once the attempts after the reload have found so. A reload to any saves the target.
func TestListOverReloads(t *testing.T) {
	t.Parallel()
	works, breaks := agenttest.NewApp(t), agenttest.NewApp(t)
	config := func(require string) string {
		return fmt.Sprintf(`
targets:
  - name: shop
    livenessProbes:
      require: %s
      probes:
        - {name: works, httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 2}
        - {name: breaks, httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 2}
`, require, works.Port, breaks.Port)
	}
	file := testutil.Write(t, config("any"))
	a := start(t, file, withRequests)
	reload := func(require string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(config(require)), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != http.StatusOK {
			t.Fatalf("%s: %d %s", require, status, body)
		}
	}
	a.Says(a.Health+"/live/shop", 200, "ok")
	breaks.Broken.Store(true)
	a.Logs("result changed", "probe_type=Liveness", "from=Success to=Failure")
	asked := breaks.Asked.Load()
	a.Eventually("the failed member goes on", func() error {
		if n := breaks.Asked.Load() - asked; n < 5 {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	a.Is(a.Health+"/live/shop", 200, "")

	reload("all")
	a.Says(a.Health+"/live/shop", 503, "")
	a.Says(a.Health+"/ready/shop", 200, "") // liveness plays no part in ready
	reload("any")
	a.Says(a.Health+"/live/shop", 200, "")
	works.Broken.Store(true)
	a.Says(a.Health+"/live/shop", 503, "")
	reload("2")
	a.Is(a.Health+"/live/shop", 503, "")
}

// A process has two liveness probes, of which any is enough. The agent leaves the process alone while
// one fails, and signals the process when both do: with the grace period of the one that failed last,
// whose name the log tells.
func TestActOfAList(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	pid := p.start("true") // which ignores SIGTERM
	member := func(name, more string) string {
		return fmt.Sprintf(`{name: %s, exec: {command: [sh, -c, 'if [ -e %s ]; then exit 1; fi']}, periodSeconds: 0.1, failureThreshold: 2%s}`, name, p.path(name), more)
	}
	a := start(t, testutil.Write(t, fmt.Sprintf(`
targets:
  - name: app
    instance: {source: process, match: '^/bin/sh %s$'}
    restart: {signal: {}, terminationGracePeriodSeconds: 3600, backOff: {initialSeconds: 0.2, maxSeconds: 0.2}}
    livenessProbes:
      require: any
      probes:
        - %s
        - %s
`, p.path("app.sh"), member("disk", ""), member("queue", ", terminationGracePeriodSeconds: 2"))))
	a.Says(a.Health+"/live/app", 200, "ok")
	p.write("disk", "")
	a.Logs("result changed", "probe_type=Liveness", "from=Success to=Failure")
	testutil.Wait(t, 500*time.Millisecond)
	a.Is(a.Health+"/live/app", 200, "")
	if !runsStill(pid) || p.signals() != "" {
		t.Fatalf("one of two has failed, and the process runs: %t, signals %q", runsStill(pid), p.signals())
	}
	p.write("queue", "")
	a.Logs("restarting the target", "target=app", "probe_type=Liveness", "reason=exit_code", "attempt=2/2", "handler=signal", "probe=queue")
	a.Logs("restart done", fmt.Sprintf("process %d has got SIGTERM, and SIGKILL after 2s", pid))
	a.Says(a.Health+"/live/app", 200, "")
	for _, name := range []string{"disk", "queue"} {
		if err := os.Remove(p.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	p.start("exit")
	a.Logs("new instance", "restarts=1")
	a.Says(a.Health+"/ready/app", 200, "")
	a.Says(a.Health+"/live/app", 200, "")
}

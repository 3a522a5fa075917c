// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// memory returns a line of the status of the agent's process, in MB.
func memory(t *testing.T, a *agenttest.Agent, line string) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line)
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return float64(kb) / 1024
}

// floods are the ways in which a crowd can take up a listener.
var floods = map[string]floodPlan{
	"idle":              {Connections: 1000},
	"idle and patient":  {Connections: 1000, Patient: true},
	"half requests":     {Connections: 1000, Send: "GET /live/app HTTP/1.1\r\nHost: a\r\nX-A: "},
	"unfinished header": {Connections: 300, Send: "GET /live/app HTTP/1.1\r\nHost: a\r\nX-A: ", Endless: 1 << 20},
	"bad requests":      {Connections: 1000, Send: "nonsense\r\n\r\n"},
	"unread answers":    {Connections: 300, Send: strings.Repeat("GET /live?verbose HTTP/1.1\r\nHost: a\r\n\r\n", 100)},
}

// floodTimes is an environment variable: how many times larger each crowd of TestFloods is. If
// floodTimes is 9, the agent may open as many files as the test.
const floodTimes = "PROBER_TEST_FLOOD_TIMES"

// Whatever a crowd does on a listener, a kubelet gets all its answers there, and the agent's
// memory stays small.
func TestFloods(t *testing.T) {
	const asks = 20
	shell, larger := "ulimit -n 1024", 1
	if n, err := strconv.Atoi(os.Getenv(floodTimes)); err == nil {
		shell, larger = "", n
	}
	for name, plan := range floods {
		for _, listener := range []string{"health", "web"} {
			t.Run(name+" on the "+listener+" listener", func(t *testing.T) {
				app := agenttest.NewApp(t)
				a := agenttest.StartProcess(t, shell, agenttest.Flags(testutil.Write(t, "targets:"+app.Target("app")))...)
				a.Says(a.Health+"/ready/app", 200, "ok")
				url := map[string]string{"health": a.Health, "web": a.Web}[listener]
				plan.Address, plan.Connections = strings.TrimPrefix(url, "http://"), plan.Connections*larger
				flood(t, plan)
				// Other tests use the CPU, too: one good window of several is
				// enough.
				answered, longest := 0, time.Duration(0)
				for window := 0; window < 5 && answered < asks; window++ {
					answered, longest = kubeletAsks(t, url+"/live/app", asks)
				}
				peak := memory(t, a, "VmHWM:") // the most memory so far
				if answered != asks || peak >= 40 {
					t.Errorf("the kubelet got %d of %d answers, and the agent took %.1f MB, want less than 40", answered, asks, peak)
				}
				t.Logf("%d of %d answers, the longest after %v; %.1f MB", answered, asks, longest.Round(time.Millisecond), peak)
			})
		}
	}
}

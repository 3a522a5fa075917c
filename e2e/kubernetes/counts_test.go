// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// The kubelet and the agent run the same probes of one application, each with its own stanza. Over a
// minute, in which the liveness probe fails for a while, the two series prober_probe_total differ by
// two at most.
func TestCounts(t *testing.T) {
	t.Parallel()
	probes := `%[1]sstartupProbe:
%[1]s  httpGet: {path: /healthz, port: 8080}
%[1]s  periodSeconds: 1
%[1]s  failureThreshold: 60
%[1]sreadinessProbe:
%[1]s  httpGet: {path: /readyz, port: 8080}
%[1]s  periodSeconds: 3
%[1]slivenessProbe:
%[1]s  httpGet: {path: /healthz, port: 8080}
%[1]s  periodSeconds: 2
%[1]s  failureThreshold: 100
`
	theirs, ours := fmt.Sprintf(probes, "      "), fmt.Sprintf(probes, "        ")
	p := deploy(t, edited(t, "pod.yaml", example(t, "      startupProbe:\n        httpGet: {path: /started/app", "  volumes:\n"), theirs,
		example(t, "        startupProbe:\n          httpGet: {path: /healthz", "---\n"), ours))
	p.begins()
	kinds := []string{"Startup successful", "Readiness successful", "Liveness successful", "Liveness failed"}
	count := func() (kubelet, agent [4]float64) {
		theirs := kubeletMetrics(t)
		_, ours := p.get(9709, "/metrics")
		for i, kind := range kinds {
			probeType, result, _ := strings.Cut(kind, " ")
			kubelet[i] = theirCount(theirs, p.namespace, probeType, result)
			agent[i] = value(ours, fmt.Sprintf(`prober_probe_total{probe_type=%q,result=%q,target="app"}`, probeType, result))
		}
		return kubelet, agent
	}
	kubeletBefore, agentBefore := count()
	began := time.Now()
	ill := false
	testutil.Within(t, 2*time.Minute, "a minute passes", func() bool {
		d := time.Since(began)
		if wants := d > 20*time.Second && d < 40*time.Second; wants != ill {
			ill = wants
			p.tell("/healthz=" + map[bool]string{true: "500", false: "200"}[ill])
		}
		return d > time.Minute
	})
	kubelet, agent := count()
	for i, kind := range kinds {
		theirs, ours := kubelet[i]-kubeletBefore[i], agent[i]-agentBefore[i]
		t.Logf("%s: the kubelet %v, the agent %v", kind, theirs, ours)
		if d := theirs - ours; d < -2 || d > 2 {
			t.Errorf("%s: the kubelet counts %v, the agent %v over a minute", kind, theirs, ours)
		}
	}
	if n := kubelet[3] - kubeletBefore[3]; n < 7 {
		t.Errorf("%v liveness probes failed in 20 s, want about 10", n)
	}
	if kubelet[0] != 1 || agent[0] != 1 {
		t.Errorf("startup succeeded %v times for the kubelet, %v times for the agent, want once each", kubelet[0], agent[0])
	}
	if n := p.now().container("app").RestartCount; n != 0 {
		t.Errorf("%d restarts, want none", n)
	}
}

// kubeletMetrics returns the kubelet's metrics.
func kubeletMetrics(t *testing.T) string {
	t.Helper()
	resp, err := http.Get("http://" + nodeIP + ":10255/metrics/probes")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// theirCount returns how often the kubelet has probed the application in a namespace.
func theirCount(metrics, namespace, probeType, result string) float64 {
	return theirSum(metrics, "prober_probe_total", `namespace="`+namespace+`"`, `probe_type="`+probeType+`"`, `result="`+result+`"`)
}

// theirSum returns the sum of the kubelet's series of the application with these labels.
func theirSum(metrics, name string, labels ...string) (sum float64) {
	for line := range strings.Lines(metrics) {
		series, rest, found := strings.Cut(line, "} ")
		series, all, _ := strings.Cut(series, "{")
		if !found || series != name || !strings.Contains(","+all, `,container="app"`) {
			continue
		}
		for _, label := range labels {
			found = found && strings.Contains(","+all, ","+label)
		}
		if found {
			count, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			sum += count
		}
	}
	return sum
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// beatAt posts a beat with no more than a socket, as a script with nc does, and returns the status.
func beatAt(t *testing.T, address, path string) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.0\r\n\r\n", path)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// The first beat starts the target, the end of the beats makes it not live, and the next beat
// makes it live. Both listeners take beats from this machine without any flag, and metrics and API
// have the time of the last one.
func TestHeartbeatOfAnAgent(t *testing.T) {
	a := start(t, agenttest.Flags(testutil.Write(t, `targets:
  - name: worker
    startupProbe: {heartbeat: {maxAgeSeconds: 1}, periodSeconds: 0.1, failureThreshold: 100000}
    livenessProbe: {heartbeat: {maxAgeSeconds: 1}, periodSeconds: 0.1, failureThreshold: 1}
`))...)
	web, listener := strings.TrimPrefix(a.Web, "http://"), strings.TrimPrefix(a.Health, "http://")
	if got := beatAt(t, listener, "/heartbeat/nobody"); got != http.StatusNotFound {
		t.Errorf("a beat of nobody: %d", got)
	}
	for _, address := range []string{listener, web} {
		a.Eventually("a beat starts the target", func() error { // the beat is old if the machine is busy
			if got := beatAt(t, address, "/heartbeat/worker"); got != http.StatusNoContent {
				return fmt.Errorf("the beat gets %d", got)
			}
			if status, body := testutil.Get(t, a.Health+"/live/worker"); status != http.StatusOK {
				return fmt.Errorf("not live: %s", body)
			}
			if status, body := testutil.Get(t, a.Health+"/started/worker"); status != http.StatusOK {
				return fmt.Errorf("not started: %s", body)
			}
			return nil
		})
		a.Says(a.Health+"/live/worker", http.StatusServiceUnavailable, "liveness: heartbeat_late (1/1)")
	}
	if got := a.Metric(`prober_probe_last_heartbeat_timestamp_seconds{probe_type="Liveness",target="worker"}`); got == "" {
		t.Error("no metric says when the last beat came")
	}
	if _, body := testutil.Get(t, a.Web+"/api/v1/targets/worker"); !strings.Contains(body, `"last_heartbeat":`) ||
		!strings.Contains(body, `"address":"/heartbeat/worker"`) {
		t.Errorf("the API says\n%s", body)
	}
	if _, body := testutil.Get(t, a.Web+"/targets/worker"); !strings.Contains(body, "last beat") {
		t.Errorf("the page says\n%s", body)
	}
}

// A beat that comes to the address of the machine, as from another one, is refused.
func TestHeartbeatFromElsewhere(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		prefix, ok := address.(*net.IPNet)
		if !ok || prefix.IP.IsLoopback() || prefix.IP.To4() == nil {
			continue
		}
		free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(prefix.IP.String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		there := free.Addr().String()
		free.Close()
		start(t, agenttest.Flags(testutil.Write(t, "targets: [{name: worker, livenessProbe: {heartbeat: {maxAgeSeconds: 60}}}]\n"),
			"--health.listen-address="+there)...)
		if got := beatAt(t, there, "/heartbeat/worker"); got != http.StatusForbidden {
			t.Errorf("a beat from %v: %d, want 403", prefix.IP, got)
		}
		return
	}
	needs.Missing(t, "an address beside those of loopback")
}

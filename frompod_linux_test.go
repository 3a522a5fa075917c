// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// With --config.from-pod.restart=signal the agent of the ConfigMap finds the application's
// process by the manifest's command, and ends the process when it is dead.
func TestFromPodSignals(t *testing.T) {
	app := agenttest.New(t)
	file, port := testutil.Write(t, "targets: []\n"), testutil.Port(t)
	cmd := agenttest.Command(t, "--config.file="+file, "--web.listen-address=127.0.0.1:"+port)
	cmd.Stderr = app.Log
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers:
  - name: app
    image: shop:1
    command: [%q, %q]
    args: [%q]
    securityContext: {runAsUser: %d}
    livenessProbe: {httpGet: {path: /not-there, port: %s}, periodSeconds: 1, failureThreshold: 1}
`, cmd.Args[0], cmd.Args[1], cmd.Args[2], os.Getuid(), port)
	code, out, said := pod(t, strings.NewReader(manifest), "--config.from-pod=-", "--config.from-pod.rewrite", "--config.from-pod.restart=signal")
	if code != exitOK {
		t.Fatalf("exit %d, said %q", code, said)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(out), &configMap); err != nil {
		t.Fatal(err)
	}
	// A new agent waits for the back-off before it acts.
	const handler = "signal: {}\n"
	soon := strings.Replace(configMap.Data["prober.yml"], handler, handler+"      backOff: {initialSeconds: 0.1}\n", 1)
	app.Begin(cmd)
	app.WaitUntilServing(false)
	a := agenttest.StartProcess(t, "", agenttest.Flags(testutil.Write(t, soon))...)
	if code := app.Wait(); code != exitOK || app.Log.Count("SIGTERM") == 0 && app.Log.Count("terminated") == 0 {
		t.Errorf("the application ended with %d:\n%s", code, app.Log)
	}
	a.Says(a.Health+"/live/app", 200, "ok")
	a.Says(a.Health+"/ready/app", 503, "[-]app failed: not running")
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// boots is a manifest of an application whose boot is protected only by the delay of a livenessProbe.
// The placeholders are the application's lives, the delay, and the init containers.
const boots = `apiVersion: v1
kind: Pod
metadata:
  name: shop
spec:
  initContainers: BEFORE
  containers:
    - name: app
      image: shop:1.0
      env: [{name: LIVES, value: "LIVES"}]
      readinessProbe:
        httpGet: {path: /readyz, port: 8080}
        periodSeconds: 1
      livenessProbe:
        httpGet: {path: /healthz, port: 8080}
        initialDelaySeconds: DELAY
      volumeMounts: [{name: lives, mountPath: /lives}]
  volumes:
    - {name: lives, emptyDir: {}}
`

// An init container runs for longer than the delay, and the boot takes long, too. The agent began
// before both.
func TestLongWait(t *testing.T) {
	t.Parallel()
	compareBoots(t, "60", `[{name: wait, image: "shop:1.0", args: [sleep, 65s]}]`, "50s")
}

// The first boot hangs, and the kubelet ends it.
func TestHangBoot(t *testing.T) {
	t.Parallel()
	compareBoots(t, "40", "[]", "hang,32s")
}

// The first boot fails after a while, and nobody has listened until then.
func TestFailedBoot(t *testing.T) {
	t.Parallel()
	compareBoots(t, "40", "[]", "exit=55s,32s")
}

// A crash loop ends after the kubelet has waited for 10, 20, 40, 80 and 160 s.
func TestGapBoot(t *testing.T) {
	t.Parallel()
	compareBoots(t, "40", "[]", "exit=0s,exit=0s,exit=0s,exit=0s,exit=0s,exit=0s,35s")
}

// compareBoots checks that the application is restarted as often with the agent, which the converter
// has put into the pod, as without. The application becomes ready, and stays ready for longer than
// the kubelet's livenessProbe takes to fail.
func compareBoots(t *testing.T, delay, before, lives string) {
	t.Helper()
	manifest := strings.NewReplacer("BEFORE", before, "DELAY", delay, "LIVES\"", lives+`"`).Replace(boots)
	began := time.Now()
	alone, with := deploy(t, manifest), deploy(t, rewritten(t, manifest))
	const limit, later, settled = 8 * time.Minute, 2 * time.Minute, 45 * time.Second
	ready := alone.await(limit, "the pod without the agent is ready", state.ready)
	readyWith := with.await(later, "the pod with the agent is ready", state.ready)
	testutil.Within(t, later, "both have been ready for 45 s", func() bool {
		for _, p := range []*pod{alone, with} {
			if !p.now().ready() {
				t.Fatalf("%s is not ready any more, %.1f s after it began", p.namespace, time.Since(began).Seconds())
			}
		}
		return time.Since(ready) > settled && time.Since(readyWith) > settled
	})
	n, nWith := alone.now().container("app").RestartCount, with.now().container("app").RestartCount
	t.Logf("without the agent: ready after %.1f s, %d restarts; with the agent: ready after %.1f s, %d restarts",
		ready.Sub(began).Seconds(), n, readyWith.Sub(began).Seconds(), nWith)
	if want := strings.Count(lives, ","); n != want || nWith != want {
		t.Errorf("restarted %d times without the agent, %d times with it, want %d", n, nWith, want)
	}
	// A first boot that hangs ends 60 s later at most, within the period of a probe.
	if d := readyWith.Sub(ready); d > 75*time.Second {
		t.Errorf("ready %v later with the agent", d)
	}
}

// rewritten returns a manifest with the agent added.
func rewritten(t *testing.T, manifest string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv(inside), "prober_exporter"), "--config.from-pod=-", "--config.from-pod.rewrite", "--config.from-pod.image=prober-exporter:0.1.0")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(manifest), &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	return string(out)
}

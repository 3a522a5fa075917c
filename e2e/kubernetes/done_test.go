// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kubernetes

import (
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// An application that has done its work, in a pod that goes on, is not started again. For two minutes
// the agent and the kubelet agree: the application does not run, is not ready, and is not to be
// killed. The end of the application is no restart.
func TestDone(t *testing.T) {
	t.Parallel()
	manifest := strings.NewReplacer("BEFORE", "[]", "DELAY", "5", "LIVES\"", `done=15s"`,
		"spec:\n  init", "spec:\n  restartPolicy: OnFailure\n  init",
		"  volumes:\n", "    - name: other\n      image: shop:1.0\n      args: [sleep, 10m]\n  volumes:\n").Replace(boots)
	p := deploy(t, rewritten(t, manifest))
	p.await(time.Minute, "the pod is ready", state.ready)
	ended := p.await(time.Minute, "the application has ended", func(s state) bool { return s.container("app").State.Terminated != nil })
	testutil.Within(t, 20*time.Second, "the agent sees the end", func() bool { return p.metric(`prober_target_running{target="app"}`) == 0 })
	testutil.Within(t, 3*time.Minute, "two minutes have passed", func() bool {
		for series, want := range map[string]float64{"running": 0, "live": 1, "ready": 0, "restarts_total": 0} {
			if got := p.metric("prober_target_" + series + `{target="app"}`); got != want {
				t.Fatalf("%v after the end prober_target_%s is %v, want %v", time.Since(ended), series, got, want)
			}
		}
		return time.Since(ended) > 2*time.Minute
	})
	if n := p.now().container("app").RestartCount; n != 0 {
		t.Errorf("the kubelet has restarted the application %d times", n)
	}
}

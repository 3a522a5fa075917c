// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// The client ends before any package is initialized that is not below package os: that is
// most of what another start of the binary costs.
func TestFailOpenStartsLittle(t *testing.T) {
	cmd := agenttest.Command(t, "--health.check=http://127.0.0.1:"+testutil.Port(t)+"/live/app", "--health.check.fail-open")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "init os @") {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		for _, dear := range []string{"init net", "init fmt", "init strings", "init unicode", "init reflect", "init crypto/tls", "/prometheus/", "protobuf", "yaml"} {
			if strings.HasPrefix(line, dear) || strings.HasPrefix(line, "init ") && strings.Contains(line, dear) {
				t.Error(line)
			}
		}
	}
}

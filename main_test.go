// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }

// start runs the program in this process and waits until it serves.
func start(t *testing.T, args ...string) *agenttest.Agent {
	t.Helper()
	a := agenttest.New(t)
	a.Run(func(ctx context.Context, log io.Writer) int { return run(ctx, args, log) })
	a.WaitUntilServing(agenttest.HasHealth(args))
	return a
}

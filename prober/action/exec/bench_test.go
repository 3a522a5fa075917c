// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// usualExec runs a command in the usual way, with os/exec.
func usualExec(timeout time.Duration, command ...string) action.Func {
	return func(ctx context.Context) (action.Outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		var output bytes.Buffer
		c.Stdout, c.Stderr = &output, &output
		err := c.Run()
		return action.Outcome{Success: err == nil, Output: output.String()}, err
	}
}

// BenchmarkExecBesideUsual compares the CPU time of the parent.
func BenchmarkExecBesideUsual(b *testing.B) {
	actiontest.Beside(b, commandExec(&config.Target{Name: "app"}, time.Minute, "true"), usualExec(time.Minute, "true"))
}

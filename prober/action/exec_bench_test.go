// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package action

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

// usualExec runs a command as one does with os/exec.
func usualExec(timeout time.Duration, command ...string) Func {
	return func(ctx context.Context) (Outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		var output bytes.Buffer
		c.Stdout, c.Stderr = &output, &output
		err := c.Run()
		return Outcome{Success: err == nil, Output: output.String()}, err
	}
}

// BenchmarkExecBesideUsual compares the parent's shares.
func BenchmarkExecBesideUsual(b *testing.B) {
	beside(b, commandExec(&config.Target{Name: "app"}, time.Minute, "true"), usualExec(time.Minute, "true"))
}

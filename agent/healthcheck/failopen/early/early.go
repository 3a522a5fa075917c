// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package early runs the client of --health.check.fail-open before the packages that an agent
// needs are initialized, and ends the process. Only package main imports it.
package early

import (
	"os"

	"github.com/prober-exporter/prober_exporter/agent/healthcheck/failopen"
)

// An init function of main itself would come last.
func init() { //nolint:gochecknoinits // what comes before main costs more than the question
	if code, done := failopen.Early(os.Args[1:], failopen.Patience, failopen.Stdout, failopen.Stderr); done {
		os.Exit(code) //nolint:forbidigo // nothing else has begun
	}
}

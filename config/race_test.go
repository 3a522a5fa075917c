// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package config

// huge is the size of a huge file. The race detector makes the YAML parser ten times
// slower, and the tests of sizes have no second goroutine.
const huge = 2_000_000

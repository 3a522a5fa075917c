// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package config

// huge is the size of a huge file.
const huge = 10_000_000

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"os"
	"testing"
)

// Descriptors returns how many files this process has open.
func Descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

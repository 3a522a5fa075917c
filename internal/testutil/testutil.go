// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package testutil has the helpers that tests of several packages share.
package testutil

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Wait lets real time pass, for tests that need real time.
func Wait(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// Ports returns n ports on which nobody listens, each like Port.
func Ports(t testing.TB, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		ports[i] = Port(t)
	}
	return ports
}

// Write writes a configuration file and returns its path.
func Write(t testing.TB, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "prober.yml")
	Rewrite(t, path, content)
	return path
}

// Rewrite writes a file.
func Rewrite(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

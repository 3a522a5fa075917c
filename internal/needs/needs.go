// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package needs lets a test say what it needs from its machine.
package needs

import (
	"fmt"
	"os"
	"testing"
)

// requireAll is the environment variable that says that nothing may be missing.
const requireAll = "PROBER_REQUIRE_ALL"

// Missing skips a test because its machine lacks something, usually a right. If
// PROBER_REQUIRE_ALL is set, the test fails instead: then the machine should have everything,
// and no test may be skipped unnoticed.
func Missing(t testing.TB, what ...any) {
	t.Helper()
	if os.Getenv(requireAll) != "" {
		t.Fatal(requireAll + " is set, and this is missing: " + fmt.Sprint(what...))
	}
	t.Skip("this is missing: " + fmt.Sprint(what...)) //nolint:forbidigo // here it is said
}

// Root skips a test without the rights of root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "the rights of root")
	}
}

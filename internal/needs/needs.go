// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package needs lets a test say what it needs of the machine that it runs on.
package needs

import (
	"fmt"
	"os"
	"testing"
)

// requireAll is the environment variable that demands everything.
const requireAll = "PROBER_REQUIRE_ALL"

// Missing skips a test for what its machine lacks, rights above all. Where
// PROBER_REQUIRE_ALL is set the test fails instead: somebody says that all is there, and
// nothing may go untested without a word.
func Missing(t testing.TB, what ...any) {
	t.Helper()
	if os.Getenv(requireAll) != "" {
		t.Fatal(requireAll + " is set, and this is missing: " + fmt.Sprint(what...))
	}
	t.Skip("this is missing: " + fmt.Sprint(what...)) //nolint:forbidigo // here it is said
}

// Root needs the rights of root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "the rights of root")
	}
}

// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

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

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"fmt"
	"testing"
)

// told is a test that remembers how it ended.
type told struct {
	testing.TB
	ended string
}

func (t *told) Helper()           {}
func (t *told) Skip(what ...any)  { t.ended += "skip: " + fmt.Sprint(what...) }
func (t *told) Fatal(what ...any) { t.ended += "fatal: " + fmt.Sprint(what...); panic(t) }

// Missing skips a test, or fails the test if nothing may be missing.
func TestMissing(t *testing.T) {
	for value, want := range map[string]string{
		"":  "skip: this is missing: a cgroup",
		"1": "fatal: PROBER_REQUIRE_ALL is set, and this is missing: a cgroup",
	} {
		t.Setenv(requireAll, value)
		got := &told{TB: t}
		func() {
			defer func() { _ = recover() }()
			Missing(got, "a ", "cgroup")
		}()
		if got.ended != want {
			t.Errorf("%q: %q, want %q", value, got.ended, want)
		}
	}
}

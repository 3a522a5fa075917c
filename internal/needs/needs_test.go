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

// What is missing skips a test, and fails it where everything is to be there.
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

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

package main

import (
	"runtime/debug"
	"testing"
)

// The collector runs again once the load is over, as often as it was told to before: also
// if another agent of the process loads meanwhile, or if it was told to never run.
func TestCollectNoGarbage(t *testing.T) {
	const off = -1
	percent := func() int {
		p := debug.SetGCPercent(off)
		debug.SetGCPercent(p)
		return p
	}
	for _, was := range []int{70, off} {
		before := debug.SetGCPercent(was)
		undo := collectNoGarbage()
		during := percent()
		undoOther := collectNoGarbage()
		undo()
		undoOther()
		after := percent()
		debug.SetGCPercent(before)
		if during != off || after != was {
			t.Errorf("told %d: %d during the load and %d after it", was, during, after)
		}
	}
}

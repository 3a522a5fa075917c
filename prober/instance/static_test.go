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

package instance

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// A static source has one instance for ever, which runs since the target was first
// heard of, and holds nothing.
func TestStatic(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := gate.Instance{ID: "static", Phase: gate.Running, StartedAt: first, MaxHold: gate.Never}
	if got := (Static{StartedAt: first}).Instance("app"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

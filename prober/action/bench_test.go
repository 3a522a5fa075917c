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

package action

import (
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
)

func benchmark(b *testing.B, f Func) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if got := attempt(b, f); !got.Success {
			b.Fatalf("got %+v", got)
		}
	}
}

func BenchmarkHTTPGet(b *testing.B) {
	benchmark(b, httpProbe(web(b, site()), time.Minute, config.HTTPGet{Path: "/len?n=2"}))
}

func BenchmarkTCPSocket(b *testing.B) {
	benchmark(b, tcpProbe(raw(b, mute), time.Minute))
}

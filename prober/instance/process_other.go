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

//go:build !linux

package instance

import (
	"errors"
	"time"
)

// errProcessNeedsLinux says why nothing is seen here.
var errProcessNeedsLinux = errors.New("instance source process needs Linux: choose another for this target")

type eyes struct{}

type scan struct{}

func (eyes) id(process) string { return "" }

// look sees nothing, and says so once.
func (p *Process) look([]*watched) time.Duration {
	p.mu.Lock()
	was := p.broken
	p.broken = errProcessNeedsLinux.Error()
	p.mu.Unlock()
	if was == "" {
		p.notes.note(func() { p.log.Error("processes cannot be looked up", "err", errProcessNeedsLinux) })
	}
	return 0
}

// ends has nothing to wait for.
type ends struct{ seen chan struct{} }

func newEnds() *ends { return &ends{} }

func (*ends) follow(map[process]bool) bool { return false }

func (*ends) take() map[process]bool { return nil }

func (*ends) close() {}

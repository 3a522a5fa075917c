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

// Package instance knows who is being probed: a source keeps a view of the
// instances of a target, one life each, so that a restart can be told.
package instance

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/gate"
)

// Source keeps a view of the instances behind targets.
type Source interface {
	// Instance returns the instance of a target as it is seen now. It never blocks.
	Instance(target string) gate.Instance
}

// New returns the source that c asks for, for a target that is first heard of at
// firstSeen.
func New(_ config.Instance, firstSeen time.Time) Source {
	return Static{StartedAt: firstSeen}
}

// MaxHold is a source's word on how long a hold after a failure may last: one that
// sees no restarts must not hold, as nobody would end it.
func MaxHold(_ config.Instance) time.Duration { return gate.Never }

// Static is one instance for ever: restarts are not seen. Its initial delays count
// from StartedAt.
type Static struct {
	StartedAt time.Time
}

// Instance returns the one instance, which always runs.
func (s Static) Instance(string) gate.Instance {
	return gate.Instance{ID: config.SourceStatic, Phase: gate.Running, StartedAt: s.StartedAt}
}

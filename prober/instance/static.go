// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
)

// Static is a source with one instance for ever: it sees no restarts. Initial delays count
// from StartedAt.
type Static struct {
	Defaults
	StartedAt time.Time
}

// Sees returns false: a static source sees nothing.
func (Static) Sees(string) bool { return false }

// Instance returns the one instance, which always runs. Its probes are never held, because
// nothing would end the hold.
func (s Static) Instance(string) gate.Instance {
	return gate.Instance{ID: config.SourceStatic, Phase: gate.Running, StartedAt: s.StartedAt, MaxHold: gate.Never}
}

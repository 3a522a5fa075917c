// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// errProcessNeedsLinux says why the source sees nothing.
var errProcessNeedsLinux = errors.New("instance source process needs Linux: choose another for this target")

type eyes struct{}

type scan struct{}

func (eyes) id(proc.Process) string { return "" }

// look sees nothing, and logs that once.
func (p *Source) look([]*watched) time.Duration {
	p.mu.Lock()
	was := p.broken
	p.broken = errProcessNeedsLinux.Error()
	p.mu.Unlock()
	if was == "" {
		p.notes.Add(func() { p.log.Error("cannot look up processes", "err", errProcessNeedsLinux) })
	}
	return 0
}

// ends has nothing to wait for.
type ends struct{ seen chan struct{} }

func newEnds() *ends { return &ends{} }

func (*ends) follow(map[proc.Process]bool) bool { return false }

func (*ends) collect() map[proc.Process]bool { return nil }

func (*ends) close() {}

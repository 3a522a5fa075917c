// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package proc reads processes and listening sockets from the kernel, for the sources
// that look at the machine themselves.
package proc

import "cmp"

// Process identifies one process of this boot.
type Process struct {
	PID   int
	Start uint64 // in ticks since boot, as in /proc/PID/stat
}

// Before orders processes by age. Within one tick the smaller PID is the parent's.
func (p Process) Before(q Process) bool {
	return cmp.Or(cmp.Compare(p.Start, q.Start), cmp.Compare(p.PID, q.PID)) < 0
}

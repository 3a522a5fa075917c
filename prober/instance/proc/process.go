// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package proc reads processes and listening sockets from the kernel, for the sources
// that look at the machine themselves.
package proc

import "cmp"

// Process is one process, and no other of this boot.
type Process struct {
	PID   int
	Start uint64 // in ticks since boot, as /proc/PID/stat has it
}

// Before orders by age; of two of one tick the smaller number is the parent's.
func (p Process) Before(q Process) bool {
	return cmp.Or(cmp.Compare(p.Start, q.Start), cmp.Compare(p.PID, q.PID)) < 0
}

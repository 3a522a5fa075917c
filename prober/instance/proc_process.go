// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import "cmp"

// process is one process, and no other of this boot.
type process struct {
	pid   int
	start uint64 // in ticks since boot, as /proc/PID/stat has it
}

// before orders by age; of two of one tick the smaller number is the parent's.
func (p process) before(q process) bool {
	return cmp.Or(cmp.Compare(p.start, q.start), cmp.Compare(p.pid, q.pid)) < 0
}

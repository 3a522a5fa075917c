// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import "sync"

// Notes collects the log lines of a source. The source adds lines under any lock; its Run
// writes them without a lock, because the reader of the log may be slow.
type Notes struct {
	mu    sync.Mutex
	taken []func()
}

// Add queues write, which writes a line, for the next Write.
func (n *Notes) Add(write func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, write)
}

// Write writes the queued lines in order.
func (n *Notes) Write() {
	n.mu.Lock()
	taken := n.taken
	n.taken = nil
	n.mu.Unlock()
	for _, write := range taken {
		write()
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import "sync"

// Notes are what a source has to log. It takes them whatever locks it, or whoever called
// it, holds; its Run writes them and holds none: who reads the log may be slow.
type Notes struct {
	mu    sync.Mutex
	taken []func()
}

// Add has write called by Run.
func (n *Notes) Add(write func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, write)
}

// Write writes what has been noted, in its order.
func (n *Notes) Write() {
	n.mu.Lock()
	taken := n.taken
	n.taken = nil
	n.mu.Unlock()
	for _, write := range taken {
		write()
	}
}

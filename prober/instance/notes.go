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

package instance

import "sync"

// notes are what a source has to log. It takes them whatever locks it, or whoever called
// it, holds; its Run writes them and holds none: who reads the log may be slow.
type notes struct {
	mu    sync.Mutex
	taken []func()
}

// note has write called by Run.
func (n *notes) note(write func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, write)
}

// write writes what has been noted, in its order.
func (n *notes) write() {
	n.mu.Lock()
	taken := n.taken
	n.taken = nil
	n.mu.Unlock()
	for _, write := range taken {
		write()
	}
}

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

package main

import (
	"os"
	"sync/atomic"
)

// reserve are files that are open for nothing but to be closed when a connection needs
// one and there is no other. Nil: there are none.
type reserve struct {
	files chan *os.File
	ended atomic.Bool
}

func newReserve(files int) *reserve {
	r := &reserve{files: make(chan *os.File, files)}
	r.fill()
	return r
}

// release closes one of them, false if there is none.
func (r *reserve) release() bool {
	if r == nil {
		return false
	}
	select {
	case f := <-r.files:
		_ = f.Close()
		return true
	default:
		return false
	}
}

// fill opens what is missing, as far as that can be.
func (r *reserve) fill() {
	if r == nil {
		return
	}
	for !r.ended.Load() && len(r.files) < cap(r.files) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		select {
		case r.files <- f:
		default: // somebody else was quicker
			_ = f.Close()
		}
	}
	if r.ended.Load() {
		r.end() // which may have come in between
	}
}

// end closes them for good.
func (r *reserve) end() {
	if r == nil {
		return
	}
	r.ended.Store(true)
	for r.release() {
	}
}

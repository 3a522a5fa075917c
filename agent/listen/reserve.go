// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"os"
	"sync/atomic"
)

// Reserve are files that are open for nothing but to be closed when a connection needs
// one and there is no other. Nil: there are none.
type Reserve struct {
	files chan *os.File
	ended atomic.Bool
}

// NewReserve returns a reserve of so many files. End closes them.
func NewReserve(files int) *Reserve {
	r := &Reserve{files: make(chan *os.File, files)}
	r.fill()
	return r
}

// release closes one of them, false if there is none.
func (r *Reserve) release() bool {
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
func (r *Reserve) fill() {
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
		r.End() // which may have come in between
	}
}

// End closes them for good.
func (r *Reserve) End() {
	if r == nil {
		return
	}
	r.ended.Store(true)
	for r.release() {
	}
}

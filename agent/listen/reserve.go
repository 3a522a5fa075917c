// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"os"
	"sync/atomic"
)

// Reserve holds files open only to close one when a connection needs a file and no other can
// be opened. A nil Reserve holds none.
type Reserve struct {
	files chan *os.File
	ended atomic.Bool
}

// NewReserve returns a reserve of that many files. End closes them.
func NewReserve(files int) *Reserve {
	r := &Reserve{files: make(chan *os.File, files)}
	r.fill()
	return r
}

// release closes a file of the reserve. It returns false if there is none.
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

// fill opens the missing files, as far as possible.
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
		default: // another fill was quicker
			_ = f.Close()
		}
	}
	if r.ended.Load() {
		r.End() // End may have been called meanwhile
	}
}

// End closes all files for good.
func (r *Reserve) End() {
	if r == nil {
		return
	}
	r.ended.Store(true)
	for r.release() {
	}
}

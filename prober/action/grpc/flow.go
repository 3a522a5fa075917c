// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

// inFlow keeps account of how much a server may send on a stream, as grpc-go does.
type inFlow struct {
	pending  uint32 // come, and not taken
	returned uint32 // taken, and not credited
	extra    uint32 // credited beyond the window, for a large message
}

// add counts n bytes that have come. It returns false if they were too many.
func (f *inFlow) add(n uint32) bool {
	f.pending += n
	return f.received() <= window+f.extra
}

// received is how much of the window is in use.
func (f *inFlow) received() uint32 { return f.pending + f.returned }

// take counts n bytes that were taken. It returns how much to credit the server.
func (f *inFlow) take(n uint32) (update uint32) {
	if f.pending == 0 {
		return 0
	}
	f.pending -= n
	spare := min(n, f.extra)
	f.extra -= spare
	f.returned += n - spare
	if f.returned >= window/4 {
		update, f.returned = f.returned, 0
	}
	return update
}

// want says that a message of size is to be taken now. It returns how much more to
// credit the server, so that it can send all of it.
func (f *inFlow) want(size uint32) (update uint32) {
	missing := int64(size) - int64(f.pending)
	room := int64(window) - int64(f.received())
	if missing <= room {
		return 0
	}
	f.extra = size
	return size
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"runtime"
	"sync"
	"weak"
)

// What is in use now. A file's certificates are in memory once, for however many probes, and over
// a reload a probe's token and last good certificate stay.
var (
	authorities registry[string, CA]
	pairs       registry[[2]string, Pair]
	tokens      registry[string, Token]
)

// registry finds values that somebody still uses. Its zero value is empty.
type registry[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// get returns the value in use for a key, or a new one.
func (r *registry[K, V]) get(key K, create func() *V) *V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.values[key].Value(); v != nil {
		return v
	}
	v := create()
	if r.values == nil {
		r.values = map[K]weak.Pointer[V]{}
	}
	r.values[key] = weak.Make(v)
	runtime.AddCleanup(v, r.forget, key)
	return v
}

// forget removes a key whose value nobody uses any more.
func (r *registry[K, V]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values[key].Value() == nil {
		delete(r.values, key)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// mostLooks bounds the looks that hang at the same time. Each occupies a thread, and the Go runtime
// ends a process with 10,000 threads.
const mostLooks = 1000

// Looks holds the looks at files that are under way: at most one at each file, however many probes
// look and however often the configuration is loaded again. A look at a dead file system may never
// end, so no attempt waits for it beyond its timeout. The zero value is ready.
type Looks struct {
	mu     sync.Mutex
	of     map[string]*look
	places chan struct{}
}

// look is one look at a file.
type look struct {
	done  chan struct{} // closed at the end
	found sight
	err   error
}

// sight is what a look has found.
type sight struct {
	began   time.Time // a moment before the look
	mtime   time.Time
	missing bool // there is no file
	// noDirectory says that even the directory of the file is missing.
	noDirectory bool
}

// Wait waits for the end of all looks, no longer than limit: a look that has not ended by then may
// never end. The caller begins none meanwhile.
func (l *Looks) Wait(limit time.Duration) {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.of))
	l.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, is := range all {
		select {
		case <-is.done:
		case <-timer.C:
			return
		}
	}
}

// at looks at a file. The error says that nobody could, within the timeout.
func (l *Looks) at(ctx context.Context, file string, timeout time.Duration) (sight, error) {
	began := time.Now()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		is := l.begin(file)
		select {
		case <-is.done:
			if !is.found.began.Before(began) {
				return is.found, is.err
			}
			// That look began earlier, and what it has seen may be old.
		case <-timer.C:
			return sight{}, fmt.Errorf("look at %s: no answer within %v", file, timeout)
		case <-ctx.Done():
			return sight{}, ctx.Err()
		}
	}
}

// begin returns the look at a file that is under way, which it begins if there is none.
func (l *Looks) begin(file string) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is := l.of[file]; is != nil {
		return is
	}
	if l.of == nil {
		l.of, l.places = map[string]*look{}, make(chan struct{}, mostLooks)
	}
	is, began := &look{done: make(chan struct{})}, time.Now()
	l.of[file] = is
	go func() {
		l.places <- struct{}{}
		is.found, is.err = lookAt(file)
		is.found.began = began
		<-l.places
		l.mu.Lock()
		delete(l.of, file)
		l.mu.Unlock()
		close(is.done)
	}()
	return is
}

// lookAt looks at a file and, if there is none, at its directory. An error says nothing about the
// file.
func lookAt(file string) (sight, error) {
	info, err := os.Stat(file)
	switch {
	case err == nil:
		return sight{mtime: info.ModTime()}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return sight{}, err
	}
	switch _, err := os.Stat(filepath.Dir(file)); {
	case err == nil:
		return sight{missing: true}, nil
	case errors.Is(err, fs.ErrNotExist):
		return sight{missing: true, noDirectory: true}, nil
	default:
		return sight{}, err
	}
}

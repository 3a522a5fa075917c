// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// fresh is how long a look at the files counts.
	fresh = time.Second
	// settled is the age from which on a file's time tells one content from the next. A file
	// that is younger is read at every look: it may change again within a tick of its clock.
	settled = 2 * time.Second
	// mostLooks bounds the looks that hang at the same time. Each occupies a thread, and the Go
	// runtime ends a process with 10,000 threads.
	mostLooks = 1000
)

// allPlaces are the places of all sources.
var allPlaces = make(chan struct{}, mostLooks)

// errSlow is for files that could not be read before the end of the context.
var errSlow = errors.New("could not be read in time")

// source is a value that is made of files.
type source[T any] struct {
	paths []string
	most  int64 // the largest size of a file
	parse func(contents [][]byte) (T, error)
	keeps bool // the last value stays while the files are there and broken

	places chan struct{} // has one for each look that is under way

	mu      sync.Mutex
	looked  time.Time     // when the last look began
	looking chan struct{} // closed at the end of the running look; nil if none runs
	found   found[T]

	// The running look alone uses the fields below.

	stamps []stamp // of the files that were parsed; nil if there was no parse
}

// found is the end of a look.
type found[T any] struct {
	value T
	good  bool  // there is a value
	err   error // the value must not be used
	stale error // why the value is not that of the present files; nil if it is
}

// newSource returns a value of files that have not been read yet.
func newSource[T any](paths []string, most int64, parse func([][]byte) (T, error)) *source[T] {
	return &source[T]{paths: paths, most: most, parse: parse, places: allPlaces}
}

// get returns the value. It looks at the files if the last look is a second old, and waits for a
// look until ctx ends.
func (s *source[T]) get(ctx context.Context) (found[T], error) {
	s.mu.Lock()
	if now := time.Now(); s.looking == nil {
		if age := now.Sub(s.looked); !s.looked.IsZero() && age < fresh {
			defer s.mu.Unlock()
			return s.found, s.found.err
		}
		s.looked, s.looking = now, make(chan struct{})
		// The caller waits for the look, or gives it up to the file system, which may never
		// answer. Nobody then begins another look at these files.
		go s.look(s.looking)
	}
	looking := s.looking
	s.mu.Unlock()
	select {
	case <-looking:
	case <-ctx.Done():
		return found[T]{}, about(s.paths, errSlow)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.found.err
}

// look looks at the files, and reads them if one has changed.
func (s *source[T]) look(done chan struct{}) {
	s.mu.Lock()
	is := s.found
	s.mu.Unlock()
	s.places <- struct{}{}
	is = s.after(is)
	<-s.places
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.looking = is, nil
	close(done)
}

// after returns what follows was.
func (s *source[T]) after(was found[T]) found[T] {
	if s.unchanged() {
		return was
	}
	s.stamps = nil
	contents, stamps := make([][]byte, len(s.paths)), make([]stamp, len(s.paths))
	for i, path := range s.paths {
		var err error
		if contents[i], stamps[i], err = read(path, s.most); err != nil {
			was.err = about(s.paths[i:i+1], err)
			return was
		}
	}
	s.stamps = stamps
	value, err := s.parse(contents)
	switch {
	case err == nil:
		return found[T]{value: value, good: true}
	case s.keeps && was.good:
		was.err, was.stale = nil, about(s.paths, err)
	default:
		was.err = about(s.paths, err)
	}
	return was
}

// unchanged reports whether the files are those that were parsed.
func (s *source[T]) unchanged() bool {
	for i, path := range s.paths {
		if s.stamps == nil {
			return false
		}
		if info, err := os.Stat(path); err != nil || !s.stamps[i].is(info) {
			return false
		}
	}
	return s.stamps != nil
}

// stamp tells a file's content from others without reading the file.
type stamp struct {
	info fs.FileInfo
	read time.Time
}

// is reports whether the file has the content that was read.
func (a stamp) is(now fs.FileInfo) bool {
	return os.SameFile(a.info, now) && a.info.Size() == now.Size() && a.info.ModTime().Equal(now.ModTime()) &&
		a.read.Sub(a.info.ModTime()) > settled
}

// read returns the whole content of a file. A file of another kind, such as a pipe, whose writer
// may never come, is an error.
func read(path string, most int64) ([]byte, stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, stamp{}, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, stamp{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	now := time.Now()
	if info, err = f.Stat(); err != nil {
		return nil, stamp{}, err
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, stamp{}, err
	case int64(len(content)) > most:
		return nil, stamp{}, fmt.Errorf("is larger than %d KiB", most>>10)
	}
	return content, stamp{info, now}, nil
}

// about returns an error that names the files once.
func about(paths []string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if len(paths) == 0 {
		return err
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = name(path)
	}
	return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
}

// name returns a path as a short text of one line.
func name(path string) string {
	const longest = 200
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		path = quoted
	}
	return path[:min(len(path), longest)]
}

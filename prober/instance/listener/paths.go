// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// paths finds the sockets that listen at paths. The file at a path tells which sockets these are, so
// it does not matter under which path another container has the file, nor which path its process has
// bound. The source's reading guards the fields, except for those that mu guards.
type paths struct {
	table  unixTable
	looker looker

	// found is what the last read found; read says that there was one.
	found []proc.UnixSocket
	files map[proc.File][]proc.Socket // found, by file
	read  bool
	// changed says that there are other sockets at paths than at the last look at all targets.
	changed bool

	wanted map[string]int   // how many targets watch a path; guarded by mu
	blind  map[string]error // why a path cannot be looked at; guarded by mu
	down   error            // why the table cannot be read; guarded by mu
}

// unixTable reads listening Unix sockets.
type unixTable interface {
	Read(into []proc.UnixSocket) ([]proc.UnixSocket, error)
	Close()
}

func newPaths() paths {
	return paths{table: new(proc.UnixSockets), looker: looker{fileAt: proc.SocketFile}, wanted: map[string]int{}, blind: map[string]error{}}
}

// pathsOf returns the paths of the Unix sockets among these listeners.
func pathsOf(listeners []config.Listener) (found []string) {
	for _, l := range listeners {
		if path, ok := config.SocketPath(l.Host); ok {
			found = append(found, path)
		}
	}
	return found
}

// want counts n more targets that watch these paths. The caller holds mu.
func (p *paths) want(these []string, n int) {
	for _, path := range these {
		if p.wanted[path] += n; p.wanted[path] == 0 {
			delete(p.wanted, path)
		}
	}
}

// readPaths reads the Unix sockets if a target watches one. The caller holds reading and not mu.
func (s *Source) readPaths() {
	p := &s.paths
	s.mu.Lock()
	wanted := slices.Collect(maps.Keys(p.wanted))
	s.mu.Unlock()
	if len(wanted) == 0 {
		p.forget()
		s.setPaths(nil, nil)
		return
	}
	found, err := p.table.Read(nil)
	s.setPathsDown(err)
	if err != nil {
		return // the last view stays
	}
	p.found, p.read = found, true
	p.files = make(map[proc.File][]proc.Socket, len(found))
	for _, f := range found {
		p.files[f.File] = append(p.files[f.File], f.Socket)
	}
	s.setPaths(s.lookAt(wanted))
}

// forget drops what is needed only while a target watches a path.
func (p *paths) forget() {
	if p.read {
		p.close()
		p.found, p.files, p.read = nil, nil, false
	}
}

// close closes what a read opens.
func (p *paths) close() {
	p.table.Close()
	p.looker.close()
}

// lookAt returns the sockets at these paths, among those of the last read, and why paths cannot be
// looked at. The caller holds reading and not mu.
//
// A file that is gone does not end its socket: whoever listened there still listens, although nobody
// can connect any more. So without a socket at a path, the ones before count as long as they listen.
func (s *Source) lookAt(these []string) (at map[string][]proc.Socket, blind map[string]error) {
	p, end := &s.paths, time.Now().Add(lookTime)
	at, blind = make(map[string][]proc.Socket, len(these)), map[string]error{}
	for _, path := range these {
		file, err := p.looker.look(path, max(time.Until(end), leastLook))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			blind[path] = err
		}
		if sockets := p.files[file]; err == nil && len(sockets) > 0 {
			at[path] = sockets
			continue
		}
		at[path] = slices.DeleteFunc(slices.Clone(s.there.byPath[path]), func(one proc.Socket) bool { return !p.listens(one.ID) })
	}
	return at, blind
}

// listens reports whether the last read has found a socket.
func (p *paths) listens(id uint64) bool {
	_, found := slices.BinarySearchFunc(p.found, id, func(one proc.UnixSocket, id uint64) int {
		switch {
		case one.ID < id:
			return -1
		case one.ID > id:
			return 1
		}
		return 0
	})
	return found
}

// setPaths makes at the sockets at all watched paths. The caller holds reading and not mu.
func (s *Source) setPaths(at map[string][]proc.Socket, blind map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.EqualFunc(at, s.there.byPath, slices.Equal) {
		s.paths.changed = true
	}
	s.there.byPath, s.paths.blind = at, blind
}

// watchPaths makes the sockets at new paths known, for a target that the source begins to watch. Ten
// thousand targets of one configuration need only one read. The caller holds reading and not mu.
func (s *Source) watchPaths(these []string) {
	unknown := slices.DeleteFunc(slices.Clone(these), func(path string) bool {
		_, known := s.there.byPath[path]
		return known
	})
	if len(unknown) == 0 {
		return
	}
	if !s.paths.read {
		s.readPaths()
		return
	}
	at, blind := s.lookAt(unknown)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.there.byPath, at)
	maps.Copy(s.paths.blind, blind)
}

// blindness returns why the source cannot see the Unix sockets of a target; nil if it can. The caller
// holds mu.
func (s *Source) blindness(l *listening) error {
	for _, path := range pathsOf(l.listeners) {
		if s.paths.down != nil {
			return s.paths.down
		}
		if err := s.paths.blind[path]; err != nil {
			return fmt.Errorf("look at the socket: %w", err)
		}
	}
	return nil
}

// setPathsDown records why Unix sockets cannot be read, nil if they can, and logs a change.
func (s *Source) setPathsDown(err error) {
	s.mu.Lock()
	was := s.paths.down
	s.paths.down = err
	s.mu.Unlock()
	switch {
	case err != nil && was == nil:
		s.notes.Add(func() {
			s.log.Warn("cannot read listening Unix sockets: the agent sees no restarts of targets behind them", "err", err)
		})
	case err == nil && was != nil:
		s.notes.Add(func() { s.log.Info("can read listening Unix sockets again") })
	default:
		return
	}
	s.wakeRun()
}

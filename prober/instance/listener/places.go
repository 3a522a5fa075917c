// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"net/netip"
	"slices"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// places has the listening sockets by where they listen. A nil places has none.
type places struct {
	byPort map[uint16][]proc.Socket
	byPath map[string][]proc.Socket // only of the paths that targets watch
}

// of returns the sorted IDs of the target's sockets, and their inodes.
func (l *listening) of(there *places) (ids, inodes []uint64) {
	if there == nil {
		return nil, nil
	}
	for _, w := range l.listeners {
		if path, ok := config.SocketPath(w.Host); ok {
			for _, found := range there.byPath[path] {
				ids, inodes = append(ids, found.ID), append(inodes, found.Inode)
			}
			continue
		}
		for _, found := range there.byPort[uint16(w.Port)] {
			if serves(found, w.Host) {
				ids, inodes = append(ids, found.ID), append(inodes, found.Inode)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), inodes
}

// serves reports whether the socket may accept a connection to host.
func serves(s proc.Socket, host string) bool {
	addr := s.Local.Addr().Unmap()
	want, err := netip.ParseAddr(host)
	want = want.Unmap().WithZone("")
	switch name := err != nil; {
	case addr.IsUnspecified() && (name || want.IsUnspecified()):
		return true // of either family
	case addr.IsUnspecified():
		return addr.Is4() == want.Is4() || want.Is4() && !s.V6Only
	case !name && !want.IsUnspecified():
		return addr.WithZone("") == want
	case !name, config.IsLocalhost(host):
		return addr.IsLoopback()
	}
	return true // a name, which the agent does not look up
}

// store stores the sockets of a read, and reports whether they equal those of the read before.
// The caller holds reading.
func (s *Source) store(found []proc.Socket) (same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same = slices.Equal(found, s.found)
	s.found, s.spare = found, s.found
	if same {
		return true
	}
	byPort := s.there.byPort
	for port := range byPort {
		delete(byPort, port)
	}
	for _, f := range found {
		byPort[f.Local.Port()] = append(byPort[f.Local.Port()], f)
	}
	return false
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"cmp"
	"net/netip"
	"slices"
)

// Socket is a listening TCP socket of the agent's network namespace.
type Socket struct {
	// ID tells this socket from every other there ever was, as far as one way of reading
	// goes: the kernel's cookie, or the inode with its highest bit set. It says nothing
	// across a change of Sockets.How; the inode is the same in both ways.
	ID uint64
	// Inode is the number that /proc/PID/fd shows; 0: nobody holds it.
	Inode uint64
	// Local is where it listens, IPv4 as IPv4; an unspecified address means everywhere.
	Local netip.AddrPort
	// V6Only says that no connection to an IPv4 address ends there. It is false where the
	// way of reading does not tell.
	V6Only bool
}

// The ways in which sockets are read, as Sockets.How tells them.
const (
	BySockDiag = "sock_diag"
	ByProcNet  = "/proc/net/tcp"
)

// inodeID marks the id of a socket of which only the inode can be read: a cookie counts
// from 1 and never gets there.
const inodeID = 1 << 63

// singlePart is how many listeners of one family come in one piece whatever the size of
// the kernel's buffer, a page at least. A longer table comes in parts, between which it
// may change, and then a socket that was there all the time can be missing or doubled.
const singlePart = 24

// inOrder sorts by id and leaves one of each, so that equal reads compare equal.
func inOrder(found []Socket) []Socket {
	slices.SortFunc(found, func(a, b Socket) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(found, func(a, b Socket) bool { return a.ID == b.ID })
}

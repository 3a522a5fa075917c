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
	// ID identifies this socket among all that one way of reading ever returns: the kernel's
	// cookie, or the inode with the highest bit set. IDs from two ways (see Sockets.How)
	// cannot be compared; inodes can.
	ID uint64
	// Inode is the number that /proc/PID/fd shows; 0 if no process holds the socket.
	Inode uint64
	// Local is the address of the socket, never IPv4-mapped; an unspecified address means all
	// addresses.
	Local netip.AddrPort
	// V6Only says that the socket accepts no connections to IPv4 addresses. V6Only is false
	// if the way of reading does not tell.
	V6Only bool
}

// The ways of reading sockets, as Sockets.How returns them.
const (
	BySockDiag = "sock_diag"
	ByProcNet  = "/proc/net/tcp"
)

// inodeID marks the ID of a socket of which only the inode is known: cookies count from 1 and
// never reach this bit.
const inodeID = 1 << 63

// singlePart is how many listeners of one family fit into the kernel's smallest buffer, a
// page. A longer table comes in parts and may change between them; then a socket that was
// there all the time can be missing or doubled.
const singlePart = 24

// inOrder sorts by ID and removes duplicates, so that equal reads compare equal.
func inOrder(found []Socket) []Socket {
	slices.SortFunc(found, func(a, b Socket) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(found, func(a, b Socket) bool { return a.ID == b.ID })
}

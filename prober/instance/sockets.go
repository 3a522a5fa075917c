// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"net/netip"
	"slices"
)

// socket is a listening TCP socket of the agent's network namespace.
type socket struct {
	// id tells this socket from every other there ever was, as far as one way of reading
	// goes: the kernel's cookie, or the inode with its highest bit set. It says nothing
	// across a change of sockets.how; the inode is the same in both ways.
	id uint64
	// inode is the number that /proc/PID/fd shows; 0: nobody holds it.
	inode uint64
	// local is where it listens, IPv4 as IPv4; an unspecified address means everywhere.
	local netip.AddrPort
	// v6only says that no connection to an IPv4 address ends there. It is false where the
	// way of reading does not tell.
	v6only bool
}

// The ways in which sockets are read, as sockets.how tells them.
const (
	bySockDiag = "sock_diag"
	byProcNet  = "/proc/net/tcp"
)

// inodeID marks the id of a socket of which only the inode can be read: a cookie counts
// from 1 and never gets there.
const inodeID = 1 << 63

// singlePart is how many listeners of one family come in one piece whatever the size of
// the kernel's buffer, a page at least. A longer table comes in parts, between which it
// may change, and then a socket that was there all the time can be missing or doubled.
const singlePart = 24

// inOrder sorts by id and leaves one of each, so that equal reads compare equal.
func inOrder(found []socket) []socket {
	slices.SortFunc(found, func(a, b socket) int { return cmp.Compare(a.id, b.id) })
	return slices.CompactFunc(found, func(a, b socket) bool { return a.id == b.id })
}

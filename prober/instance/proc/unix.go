// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"cmp"
	"slices"
)

// UnixSocket is a listening Unix socket of the agent's network namespace. Where several mount
// namespaces share a file, the file may have several paths, so the file tells where the socket is, and
// not the path that its process has bound.
type UnixSocket struct {
	Socket // without Local

	File File
}

// File identifies a file of this machine as sock_diag does, by the lower 32 bits of both numbers.
type File struct{ Device, Inode uint32 }

// unixPart is how many Unix sockets fit into the kernel's smallest buffer: see singlePart.
const unixPart = 90

// unixInOrder sorts by ID and removes duplicates.
func unixInOrder(found []UnixSocket) []UnixSocket {
	slices.SortFunc(found, func(a, b UnixSocket) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(found, func(a, b UnixSocket) bool { return a.ID == b.ID })
}

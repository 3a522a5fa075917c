// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The parts of linux/unix_diag.h that are used here.
const (
	unixShowVFS = 2 // UDIAG_SHOW_VFS
	unixVFS     = 1 // UNIX_DIAG_VFS
)

// UnixSockets reads the listening Unix stream sockets of the agent's network namespace from
// sock_diag. There is no other way: /proc/net/unix has their paths, but not their files. The zero
// value is ready for use. A UnixSockets is not safe for concurrent use.
type UnixSockets struct {
	conn *netlink.Conn
}

// Close closes the netlink socket; the next Read opens another.
func (s *UnixSockets) Close() {
	if s.conn != nil {
		_ = s.conn.Close() // no data can be lost
		s.conn = nil
	}
}

// Read appends the listening sockets, ordered by ID. With an error Read appends nothing, because the
// last read is the better guess. Like Sockets, Read takes a table that comes in parts twice.
func (s *UnixSockets) Read(into []UnixSocket) ([]UnixSocket, error) {
	found := into
	for range 2 {
		var err error
		if found, err = s.table(found); err != nil {
			s.Close()
			return into, fmt.Errorf("read listening Unix sockets by sock_diag: %w", err)
		}
		if len(found)-len(into) <= unixPart {
			break
		}
	}
	return found[:len(into)+len(unixInOrder(found[len(into):]))], nil
}

// table appends the sockets of one whole dump.
func (s *UnixSockets) table(into []UnixSocket) ([]UnixSocket, error) {
	if s.conn == nil {
		conn, err := dialDiag()
		if err != nil {
			return into, err
		}
		s.conn = conn
	}
	// struct unix_diag_req: family, protocol, padding, states, an inode that a dump ignores, what
	// to show, and a cookie that a dump ignores.
	var request [24]byte
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], 1<<unix.BPF_TCP_LISTEN)
	binary.NativeEndian.PutUint32(request[12:], unixShowVFS)
	for range diagTries {
		found := into
		whole, err := dump(s.conn, request[:], func(message []byte) error {
			one, ok, err := parseUnix(message)
			if ok {
				found = append(found, one)
			}
			return err
		})
		if err != nil {
			return into, err
		}
		if whole {
			return found, nil
		}
	}
	return into, errTorn
}

// parseUnix reads a struct unix_diag_msg: family, type, state and padding (4 bytes), the inode and the
// cookie (12). ok is false for a socket without a file, and for one that takes no streams.
func parseUnix(b []byte) (one UnixSocket, ok bool, err error) {
	if len(b) < 16 {
		return UnixSocket{}, false, fmt.Errorf("a Unix socket's message has %d bytes, not 16", len(b))
	}
	if b[0] != unix.AF_UNIX || b[1] != unix.SOCK_STREAM {
		return UnixSocket{}, false, nil
	}
	one.Inode = uint64(binary.NativeEndian.Uint32(b[4:]))
	one.ID = uint64(binary.NativeEndian.Uint32(b[8:])) | uint64(binary.NativeEndian.Uint32(b[12:]))<<32
	attributes, err := netlink.NewAttributeDecoder(b[16:])
	if err != nil {
		return UnixSocket{}, false, err
	}
	for attributes.Next() {
		// struct unix_diag_vfs: the inode and the device, as the kernel writes it.
		if vfs := attributes.Bytes(); attributes.Type() == unixVFS && len(vfs) >= 8 {
			one.File = File{Inode: binary.NativeEndian.Uint32(vfs), Device: binary.NativeEndian.Uint32(vfs[4:])}
			ok = true
		}
	}
	return one, ok, attributes.Err()
}

// SocketFile returns the socket at a path, as the agent's own mount namespace has it. The error is
// fs.ErrNotExist if there is no socket.
func SocketFile(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Type() != fs.ModeSocket {
		return File{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
	}
	// The kernel's own form of a device has 20 bits for the minor number.
	device := unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev)
	return File{Device: device, Inode: uint32(stat.Ino)}, nil
}

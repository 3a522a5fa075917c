// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// backlog returns how many connections wait in the kernel's queue of a listener, and how many
// can; 0 if unknown.
func backlog(l net.Listener) (queued, room int) {
	control(l, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			queued, room = int(info.Unacked), int(info.Sacked) // the meaning of these fields for a listener
		}
	})
	return queued, room
}

// asks reports whether a whole request, or the beginning of a TLS handshake, has arrived on a
// connection.
func asks(c net.Conn, buf []byte) bool {
	asks := true
	control(c, func(fd int) {
		n, _, err := unix.Recvfrom(fd, buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		const handshake = 22
		asks = err == nil && n > 0 && (buf[0] == handshake || bytes.Contains(buf[:n], []byte("\r\n\r\n")))
	})
	return asks
}

// control calls f with the socket of a connection or listener, if it has one.
func control(c any, f func(fd int)) {
	if c, ok := c.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // may be closed already
		}
	}
}

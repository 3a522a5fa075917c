// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package main

import (
	"bytes"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// backlog returns how many connections wait in the kernel's queue of a listener, and how
// many can; 0 if nothing tells.
func backlog(l net.Listener) (queued, room int) {
	control(l, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			queued, room = int(info.Unacked), int(info.Sacked) // what these mean for a listener
		}
	})
	return queued, room
}

// asks reports whether a request can be read from a connection as a whole, or the
// beginning of a TLS handshake.
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
			_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // it may have been closed
		}
	}
}

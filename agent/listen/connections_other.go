// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package listen

import "net"

// backlog returns how many connections wait for a listener, and how many can; here nothing
// tells.
func backlog(net.Listener) (queued, room int) { return 0, 0 }

// asks reports whether a connection comes with a request; here nothing tells.
func asks(net.Conn, []byte) bool { return true }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package listen

import "net"

// backlog returns 0, 0: the length of the queue is unknown on this system.
func backlog(net.Listener) (queued, room int) { return 0, 0 }

// asks returns true: whether a request has arrived is unknown on this system.
func asks(net.Conn, []byte) bool { return true }

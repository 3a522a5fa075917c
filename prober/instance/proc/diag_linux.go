// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// This file asks the kernel's sock_diag for sockets of any family.

const (
	// diagTimeout ends a dump that does not end by itself; no known kernel makes one.
	diagTimeout = 5 * time.Second
	// diagBuffer is the largest part that the kernel makes of a dump.
	diagBuffer = 32 << 10
	// diagTries is how often a dump is tried while the kernel calls it inconsistent.
	diagTries = 5
)

// errTorn says that the table changed during every dump.
var errTorn = errors.New("the table changes faster than the agent can read it")

func dialDiag() (*netlink.Conn, error) {
	return netlink.Dial(unix.NETLINK_SOCK_DIAG, &netlink.Config{MessageBufferSize: diagBuffer})
}

// dump asks for a dump, calls each with the message of every socket, and reports whether the kernel
// calls the dump consistent. An error of each ends the dump.
func dump(conn *netlink.Conn, request []byte, each func(message []byte) error) (whole bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(diagTimeout)); err != nil {
		return false, err
	}
	asked, err := conn.Send(netlink.Message{
		Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY, Flags: netlink.Request | netlink.Dump},
		Data:   request,
	})
	if err != nil {
		return false, err
	}
	whole = true
	for m, err := range conn.ReceiveIter() {
		if err != nil {
			return false, err
		}
		if m.Header.Sequence != asked.Header.Sequence {
			return false, fmt.Errorf("answer %d to request %d", m.Header.Sequence, asked.Header.Sequence)
		}
		if m.Header.Flags&netlink.DumpInterrupted != 0 {
			whole = false
		}
		if m.Header.Type != unix.SOCK_DIAG_BY_FAMILY {
			continue
		}
		if err := each(m.Data); err != nil {
			return false, err
		}
	}
	return whole, nil
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package action

import "syscall"

// Winsock has numbers of its own. Package syscall names few of them, and its E…
// constants are inventions for Windows that no socket call returns.

// exhausted are the errors of a dial that say that the agent or its machine has run
// out of something: descriptors, buffers, memory, ephemeral ports.
var exhausted = []error{
	syscall.Errno(8),     // ERROR_NOT_ENOUGH_MEMORY
	syscall.Errno(10024), // WSAEMFILE
	syscall.Errno(10049), // WSAEADDRNOTAVAIL
	syscall.Errno(10055), // WSAENOBUFS
}

// errnos groups the system's errors by reason.
var errnos = []errnoReason{
	{ConnectionRefused, []error{
		syscall.Errno(10061), // WSAECONNREFUSED
	}},
	{ConnectionReset, []error{
		syscall.WSAECONNABORTED, syscall.WSAECONNRESET, syscall.ERROR_BROKEN_PIPE,
	}},
	{NoRoute, []error{
		syscall.Errno(10050), // WSAENETDOWN
		syscall.Errno(10051), // WSAENETUNREACH
		syscall.Errno(10064), // WSAEHOSTDOWN
		syscall.Errno(10065), // WSAEHOSTUNREACH
	}},
}

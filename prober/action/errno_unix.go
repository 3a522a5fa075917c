// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package action

import "syscall"

// exhausted are the errors of a dial that say that the agent or its machine has run
// out of something: descriptors, buffers, memory, ephemeral ports.
var exhausted = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL,
}

// errnos groups the system's errors by reason.
var errnos = []errnoReason{
	{ConnectionRefused, []error{syscall.ECONNREFUSED}},
	{ConnectionReset, []error{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}},
	{NoRoute, []error{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN}},
}

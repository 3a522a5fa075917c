// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package prober

import "golang.org/x/sys/unix"

// OpenFiles returns how many files the process may have open at a time.
func OpenFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return unknownOpenFiles
	}
	return int(min(uint64(limit.Cur), 1<<20)) //nolint:unconvert // Cur is signed on some systems
}

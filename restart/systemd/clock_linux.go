// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import "golang.org/x/sys/unix"

// monotonic returns the present moment in the microseconds of systemd's monotonic timestamps.
func monotonic() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // then every life is too young
	}
	return uint64(now.Nano() / 1000)
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// checkExecutable finds a file system without the right to execute: its probe would fail, and
// a kubelet would take that for the application's failure.
func checkExecutable(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be executed, its file system may be mounted noexec: %w", path, err)
	}
	return nil
}

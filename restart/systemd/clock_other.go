// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package systemd

// monotonic returns a moment before every other: there is no systemd here.
func monotonic() uint64 { return 0 }

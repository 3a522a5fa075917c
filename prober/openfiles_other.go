// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package prober

// OpenFiles returns how many files the process may have open at a time; here
// nothing tells.
func OpenFiles() int { return unknownOpenFiles }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package prober

// OpenFiles returns how many files the process may have open at a time: a guess, because
// this system has no such limit to read.
func OpenFiles() int { return unknownOpenFiles }

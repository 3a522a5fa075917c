// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

import "errors"

// Sockets cannot be read here.
type Sockets struct{}

// errSocketsNeedLinux says why.
var errSocketsNeedLinux = errors.New("reading listening sockets needs Linux")

// Read fails.
func (s *Sockets) Read(into []Socket) ([]Socket, error) { return into, errSocketsNeedLinux }

// How names no way.
func (s *Sockets) How() string { return "" }

// Close has nothing to let go of.
func (s *Sockets) Close() {}

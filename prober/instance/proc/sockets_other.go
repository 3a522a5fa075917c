// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

import "errors"

// Sockets reads nothing: listening sockets need Linux.
type Sockets struct{}

// errSocketsNeedLinux is the error of Read.
var errSocketsNeedLinux = errors.New("reading listening sockets needs Linux")

// Read returns an error.
func (s *Sockets) Read(into []Socket) ([]Socket, error) { return into, errSocketsNeedLinux }

// How returns "".
func (s *Sockets) How() string { return "" }

// Close does nothing.
func (s *Sockets) Close() {}

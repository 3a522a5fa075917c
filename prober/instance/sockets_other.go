// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package instance

import "errors"

// sockets cannot be read here.
type sockets struct{}

// errSocketsNeedLinux says why.
var errSocketsNeedLinux = errors.New("reading listening sockets needs Linux")

func (s *sockets) read(into []socket) ([]socket, error) { return into, errSocketsNeedLinux }

func (s *sockets) how() string { return "" }

func (s *sockets) close() {}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

// UnixSockets reads nothing: listening sockets need Linux.
type UnixSockets struct{}

// Read returns an error.
func (s *UnixSockets) Read(into []UnixSocket) ([]UnixSocket, error) { return into, errSocketsNeedLinux }

// Close does nothing.
func (s *UnixSockets) Close() {}

// SocketFile returns an error.
func SocketFile(string) (File, error) { return File{}, errSocketsNeedLinux }

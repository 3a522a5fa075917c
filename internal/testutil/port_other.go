// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testutil

import (
	"net"
	"testing"
)

// Port returns a port of 127.0.0.1 on which nobody listens.
func Port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package restart

import (
	"context"
	"errors"
)

// signalProcess returns an error: only Linux has a signal that cannot hit another process.
func signalProcess(context.Context, *request) (string, error) {
	return "", errors.New("signal works on Linux only")
}

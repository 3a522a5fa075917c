// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package action

var systemHelpers map[string]func(args []string)

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// entry is a log line, to be written once no lock is held.
type entry struct {
	handler slog.Handler
	record  slog.Record
}

// newEntry returns the line that log would write now.
func newEntry(log *slog.Logger, level slog.Level, message string, args ...any) entry {
	var caller [1]uintptr
	runtime.Callers(2, caller[:])
	e := entry{log.Handler(), slog.NewRecord(time.Now(), level, message, caller[0])}
	e.record.Add(args...)
	return e
}

func logAll(entries []entry) {
	for _, e := range entries {
		if ctx := context.Background(); e.handler.Enabled(ctx, e.record.Level) {
			_ = e.handler.Handle(ctx, e.record) // a log that fails has nowhere to report it
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package prober

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// entry is a line for the log, written once no lock is held.
type entry struct {
	handler slog.Handler
	record  slog.Record
}

// newEntry returns what log would write now.
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
			_ = e.handler.Handle(ctx, e.record) // there is nobody to tell
		}
	}
}

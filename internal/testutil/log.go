// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

// Log keeps the text that a logger writes to it. A test may read a Log while other
// goroutines write to it. The zero value is ready for use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the text.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the text so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how many lines contain all these texts.
func (l *Log) Count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
line:
	for line := range strings.Lines(l.text.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue line
			}
		}
		n++
	}
	return n
}

// LogFunc is a log handler that calls itself with the message of each record.
type LogFunc func(message string)

// Enabled reports that every level is logged.
func (LogFunc) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns the same handler.
func (f LogFunc) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup returns the same handler.
func (f LogFunc) WithGroup(string) slog.Handler { return f }

// Handle calls f.
func (f LogFunc) Handle(_ context.Context, r slog.Record) error {
	f(r.Message)
	return nil
}

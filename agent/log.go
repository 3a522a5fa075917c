// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/go-kit/log"
	sloggokit "github.com/tjhop/slog-gokit"

	"github.com/prober-exporter/prober_exporter/logqueue"
)

// logPatience is how long an exit waits for the log to be written.
const logPatience = time.Second

// ErrUsage marks an error of the flags, errTold an error that is in the log already.
var (
	ErrUsage = errors.New("bad flags")
	errTold  = errors.New("there is no configuration to run with")
)

// Log is the only log of the process. Logging never waits for the reader of the log.
type Log struct {
	*slog.Logger
	lines *logqueue.Queue
}

// NewLog returns the log that the flags ask for. The caller must close it.
func NewLog(o *Options, w io.Writer) *Log {
	lines := logqueue.New(w, func(n uint64) []byte { return lostLines(o, n) })
	return &Log{newLogger(o, lines), lines}
}

// Close waits until all lines are written, but no longer than a second.
func (l *Log) Close() { l.lines.Close(logPatience) }

// TellEnd logs the error for which the process ends, unless it is nil or in the log already.
func (l *Log) TellEnd(err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrUsage):
		_, _ = fmt.Fprintf(l.lines, "prober_exporter: error: %v, try --help\n", err)
	case !errors.Is(err, errTold):
		l.Error("prober_exporter ends", "err", err)
	}
}

// newLogger returns a logger that writes go-kit's format, each line with one Write: w must be
// safe for concurrent use.
func newLogger(o *Options, w io.Writer) *slog.Logger {
	sink := log.NewLogfmtLogger(w)
	if o.LogFormat == "json" {
		sink = log.NewJSONLogger(w)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(o.LogLevel))); err != nil {
		level = slog.LevelInfo // the flag accepts no other name
	}
	return slog.New(sloggokit.NewGoKitHandler(sink, level))
}

// lostLines returns the line that replaces n dropped lines, whatever the log level.
func lostLines(o *Options, n uint64) []byte {
	var line bytes.Buffer
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped here: they could not be written in time", 0)
	r.Add("lines", n)
	_ = newLogger(o, &line).Handler().Handle(context.Background(), r) // a buffer never fails
	return line.Bytes()
}

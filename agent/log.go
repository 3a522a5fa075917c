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

// ErrUsage marks an error of the flags, errTold one that the log has told of.
var (
	ErrUsage = errors.New("bad flags")
	errTold  = errors.New("there is no configuration to run with")
)

// Log is the one log of the process. Nobody who logs waits for whoever reads the log.
type Log struct {
	*slog.Logger
	lines *logqueue.Queue
}

// NewLog returns the log that the flags ask for. Somebody has to close it.
func NewLog(o *Options, w io.Writer) *Log {
	lines := logqueue.New(w, func(n uint64) []byte { return lostLines(o, n) })
	return &Log{newLogger(o, lines), lines}
}

// Close waits for what has been logged to be written, no longer than a second.
func (l *Log) Close() { l.lines.Close(logPatience) }

// TellEnd tells why the process ends, if it ends for an error.
func (l *Log) TellEnd(err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrUsage):
		_, _ = fmt.Fprintf(l.lines, "prober_exporter: error: %v, try --help\n", err)
	case !errors.Is(err, errTold):
		l.Error("prober_exporter ends", "err", err)
	}
}

// newLogger returns the one log, written through go-kit as all of Prometheus' were, each
// line in one go: w must be safe for concurrent use.
func newLogger(o *Options, w io.Writer) *slog.Logger {
	sink := log.NewLogfmtLogger(w)
	if o.LogFormat == "json" {
		sink = log.NewJSONLogger(w)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(o.LogLevel))); err != nil {
		level = slog.LevelInfo // parse lets no other name through
	}
	return slog.New(sloggokit.NewGoKitHandler(sink, level))
}

// lostLines returns the line that stands for lost ones, whatever level is logged.
func lostLines(o *Options, n uint64) []byte {
	var line bytes.Buffer
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped here: they could not be written in time", 0)
	r.Add("lines", n)
	_ = newLogger(o, &line).Handler().Handle(context.Background(), r) // a buffer takes everything
	return line.Bytes()
}

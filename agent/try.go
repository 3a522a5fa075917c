// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
)

// errNotAll says that a probe has not succeeded. It is on stdout or stderr already.
var errNotAll = errors.New("not all probes have succeeded")

// Try makes one attempt of each probe of the configuration, or of a single target, and prints a
// table of them to stdout as they end. The file - is stdin. Notices, mistakes and the log go to stderr. Try returns
// an error unless all attempts have succeeded. SIGINT and SIGTERM cut the attempts short.
func Try(ctx context.Context, o *Options, stdin io.Reader, stdout, stderr io.Writer) error {
	cfg, notices, err := loadTried(o.ConfigFile, stdin)
	for _, n := range notices {
		_, _ = fmt.Fprintf(stderr, "%v: %v\n", n.Level, n)
	}
	if err = naming("config.file", err); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return err
	}
	name := o.ConfigFile
	if name == "-" {
		name = "stdin"
	}
	if cfg = only(cfg, o.Try.Target); cfg == nil {
		_, _ = fmt.Fprintf(stderr, "prober_exporter: error: --config.try: %s has no target %q\n", name, o.Try.Target)
		return ErrUsage
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := NewLog(o, stderr)
	defer lines.Close()

	t := newTrials(cfg, stdout)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if t.head(); t.err == nil {
			prober.Try(ctx, cfg, prober.Options{Logger: lines.Logger, MaxInFlight: o.MaxInFlight}, func(is prober.Trial) {
				if t.add(is); t.err != nil {
					cancel()
				}
			})
		}
	}()
	if !endsWithin(ctx, ended, stopTime) {
		return fmt.Errorf("some attempts do not end: %w", errNotAll)
	}
	switch {
	case t.err != nil:
		_, _ = fmt.Fprintln(stderr, t.err)
		return t.err
	case t.ended < t.probes:
		_, _ = fmt.Fprintf(stderr, "%s: stopped after %d of %d probes\n", name, t.ended, t.probes)
	case t.skipped > 0:
		_, _ = fmt.Fprintf(stderr, "%s: %d of %d probes succeeded, %d skipped\n", name, t.successes, t.probes, t.skipped)
	default:
		_, _ = fmt.Fprintf(stderr, "%s: %d of %d probes succeeded\n", name, t.successes, t.probes)
	}
	if t.successes+t.skipped < t.probes {
		return errNotAll
	}
	return nil
}

func loadTried(file string, stdin io.Reader) (*config.Config, []config.Notice, error) {
	if file != "-" {
		return config.LoadFile(file)
	}
	data, err := config.ReadFrom(stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("read stdin: %w", err)
	}
	return config.Load("stdin", data, os.LookupEnv)
}

// only returns the configuration with the target of that name alone; nil if there is none. An
// empty name stands for all targets.
func only(cfg *config.Config, name string) *config.Config {
	if name == "" {
		return cfg
	}
	for i := range cfg.Targets {
		if cfg.Targets[i].Name == name {
			return &config.Config{Targets: cfg.Targets[i : i+1]}
		}
	}
	return nil
}

// endsWithin waits for the end, or until limit after ctx is done. It reports whether the end has
// come.
func endsWithin(ctx context.Context, ended <-chan struct{}, limit time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// trials prints the table. Its columns are known before the first attempt ends.
type trials struct {
	w                  io.Writer
	err                error // of w
	target, probe      int   // how wide the columns are
	probes, ended      int
	successes, skipped int
}

func newTrials(cfg *config.Config, w io.Writer) *trials {
	t := &trials{w: w, target: len("TARGET"), probe: len("PROBE")}
	for i := range cfg.Targets {
		target := &cfg.Targets[i]
		t.target = max(t.target, len(target.Name))
		for kind, p := range target.All() {
			t.probes++
			t.probe = max(t.probe, len(prober.ProbeName(kind, p.Name)))
		}
	}
	return t
}

func (t *trials) head() { t.line("TARGET", "PROBE", "OUTCOME", "REASON", "DURATION", "OUTPUT") }

func (t *trials) add(is prober.Trial) {
	t.ended++
	outcome := is.Outcome.String()
	switch {
	case is.Skipped:
		t.skipped++
		outcome = "skipped"
	case is.Outcome == prober.Successful:
		t.successes++
	}
	t.line(is.Target, is.Probe, outcome, string(is.Reason), fmt.Sprintf("%.3f s", is.Duration.Seconds()), is.Output)
}

func (t *trials) line(target, probe, outcome, reason, duration, output string) {
	line := fmt.Sprintf("%-*s  %-*s  %-10s  %-18s  %9s  %s", t.target, target, t.probe, probe, outcome, reason, duration, output)
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, strings.TrimRight(line, " "))
	}
}

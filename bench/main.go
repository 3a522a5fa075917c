// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// The bench command measures the agent's costs in one run, beside the usual way to probe and
// beside the floor. It counts only the CPU time of the probing process, and prints one table
// with the goals. Every measurement has a fresh process, and the target server has a process of
// its own.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"time"

	"github.com/go-kit/log"
	sloggokit "github.com/tjhop/slog-gokit"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

// newLogger returns the agent's own logger at level info, whose lines go nowhere.
func newLogger() *slog.Logger {
	return slog.New(sloggokit.NewGoKitHandler(log.NewLogfmtLogger(io.Discard), slog.LevelInfo))
}

// bench is a run of the program.
type bench struct {
	ctx     context.Context // done when the run is interrupted
	rounds  int
	seconds float64
	binary  string // the shipped binary
	plain   string // the program with only the libraries
	profile string // the directory for profiles of the agent
	source  string
	at      endpoints
	out     io.Writer
	table   table
}

func run(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var (
		rows    = flags.String("run", "", "only rows whose name matches this expression")
		rounds  = flags.Int("rounds", 5, "rounds of each comparison")
		seconds = flags.Float64("seconds", 1.5, "how long each round measures")
		quick   = flags.Bool("quick", false, "two short rounds: for a look")
		growth  = flags.Bool("growth", false, "measure how cost grows with the targets, too")
		binary  = flags.String("binary", "./prober_exporter", "the shipped binary, as make build leaves it")
		plain   = flags.String("libraries", "", "bench/libraries compiled as a release, which measures what the libraries take; empty: without")
		profile = flags.String("profile", "", "write profiles of ours into this directory")
		source  = flags.String("source", "", "instance source of the targets; empty: what the agent chooses")
		list    = flags.Bool("list", false, "list the rows and exit")
		role    = flags.String("role", "", "what a process that the program itself starts is for: serve, or measure")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch *role {
	case "serve":
		return serve(os.Stdin, os.Stdout)
	case "measure":
		var s spec
		if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
			return fmt.Errorf("read what to measure: %w", err)
		}
		f, err := measure(s)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(f)
	}
	only, err := regexp.Compile(*rows)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *quick {
		*rounds, *seconds = 2, 0.7
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{ctx: ctx, rounds: *rounds, seconds: *seconds, binary: *binary, plain: *plain, profile: *profile, source: *source, out: os.Stdout}
	if *list {
		for _, r := range allRows() {
			_, _ = fmt.Fprintf(b.out, "%-14s %s\n", r.name, r.title)
		}
		return nil
	}
	return b.all(only, *growth)
}

// all starts the target server, runs the rows and prints the table.
func (b *bench) all(only *regexp.Regexp, growth bool) error {
	began := time.Now()
	end, err := b.startServer()
	if err != nil {
		return err
	}
	defer end()
	for _, r := range allRows() {
		if !only.MatchString(r.name) || b.ctx.Err() != nil {
			continue
		}
		_, _ = fmt.Fprintf(os.Stderr, "%s\n", r.title)
		if err := r.run(b, r); err != nil {
			b.table.failed(r, err)
		}
	}
	b.table.print(b.out, time.Since(began))
	if growth && b.ctx.Err() == nil {
		return b.growth()
	}
	return b.ctx.Err()
}

// startServer starts the target server in a process of its own.
func (b *bench) startServer() (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c := exec.CommandContext(b.ctx, self, "-role", "serve")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe() // closing it ends the server, even if this process is killed
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start the target server: %w", err)
	}
	end = func() {
		_ = in.Close()
		_ = c.Wait() // nobody needs the exit code
	}
	if err := json.NewDecoder(out).Decode(&b.at); err != nil {
		end()
		return nil, fmt.Errorf("hear from the target server: %w", err)
	}
	return end, nil
}

// measured runs a fresh process that measures s.
func (b *bench) measured(s spec) (figures, error) {
	self, err := os.Executable()
	if err != nil {
		return figures{}, fmt.Errorf("find this program: %w", err)
	}
	s.At, s.CA, s.Source = b.at[s.Action], b.at[authority][0], b.source
	if b.profile != "" && s.Side == sideOurs {
		s.Profile = fmt.Sprintf("%s/%s-%s-%d-%v.pprof", b.profile, s.Measure, s.Action, s.Probes, s.Period)
	}
	c := exec.CommandContext(b.ctx, self, "-role", "measure")
	c.Stderr = os.Stderr
	if s.Side == sideOurs && s.Period != 0 && float64(s.Probes)/s.Period.Seconds() < 100 {
		c.Env = append(os.Environ(), "GOGC=50") // as the agent sets it for few attempts
	}
	in, err := c.StdinPipe()
	if err != nil {
		return figures{}, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return figures{}, err
	}
	if err := c.Start(); err != nil {
		return figures{}, fmt.Errorf("start a measurement: %w", err)
	}
	var f figures
	writeErr := json.NewEncoder(in).Encode(s)
	_ = in.Close()
	readErr := json.NewDecoder(out).Decode(&f)
	if err := c.Wait(); err != nil {
		return f, fmt.Errorf("measure %s of %s: %w", s.Action, s.Side, err)
	}
	if writeErr != nil {
		return f, writeErr
	}
	return f, readErr
}

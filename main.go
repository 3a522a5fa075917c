// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The prober_exporter command runs startup, readiness and liveness probes with the
// kubelet's own rules, answers health checks, and exports what it sees to Prometheus.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/prober-exporter/prober_exporter/agent"
	"github.com/prober-exporter/prober_exporter/agent/healthcheck"
	"github.com/prober-exporter/prober_exporter/agent/healthcheck/failopen"
	_ "github.com/prober-exporter/prober_exporter/agent/healthcheck/failopen/early" // asks before the packages of an agent are initialized
)

// The exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	// The reader of the log may go away: without this, the next line would kill the agent.
	// Exec probes do not inherit a handler, but would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], os.Stderr))
}

// run runs the process and returns its exit code once everything it has started has ended.
// When ctx is done, run stops as on SIGTERM.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	o, code, done := parse(args, stderr)
	if done {
		return code
	}
	return exitCode(do(ctx, o, stderr))
}

// do does what the flags ask for. An error that do returns is on stderr already.
func do(ctx context.Context, o *agent.Options, stderr io.Writer) (err error) {
	switch {
	case o.ConfigCheck:
		return agent.CheckConfig(o, stderr)
	case o.Try.Asked:
		return agent.Try(ctx, o, os.Stdin, os.Stdout, stderr)
	case o.Terminating:
		healthcheck.TellTerminating(ctx, o.HealthAddresses, *o.Web.WebListenAddresses, stderr)
		return nil
	case o.CopyTo != "":
		return agent.CopyTo(o.CopyTo, stderr)
	case o.HealthCheckWait > 0:
		return healthcheck.AskUntil(ctx, o.HealthCheck, o.HealthCheckWait, o.HealthCheckFailOpen, os.Stdout, stderr)
	case o.HealthCheckFailOpen:
		return healthcheck.AskFailOpen(ctx, o.HealthCheck, failopen.Patience(), os.Stdout, stderr)
	case o.FromPod.Asked:
		return agent.FromPod(o.FromPod, os.Stdin, os.Stdout, stderr)
	}
	log := agent.NewLog(o, stderr)
	defer log.Close()
	slog.SetDefault(log.Logger) // net/http reports some errors only to the standard log
	if o.IsHealthCheck {
		err = healthcheck.Ask(ctx, o.HealthCheck, os.Stdout)
	} else {
		err = agent.Run(ctx, o, log)
	}
	log.TellEnd(err)
	return err
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, agent.ErrUsage):
		return exitUsage
	}
	return exitError
}

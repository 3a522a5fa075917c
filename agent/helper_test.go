// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"net"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

func TestMain(m *testing.M) {
	if plan := os.Getenv(victimEnv); plan != "" {
		victimMain(plan)
	}
	if plan := os.Getenv(floodEnv); plan != "" {
		floodMain(plan)
	}
	os.Exit(agenttest.Main(m))
}

// start runs an agent with a configuration in this process and waits until it serves.
func start(t *testing.T, file string, set ...func(*Options)) *agenttest.Agent {
	t.Helper()
	o := options(file, set...)
	a := agenttest.New(t)
	a.Run(func(ctx context.Context, log io.Writer) int { return runWith(ctx, o, log) })
	a.WaitUntilServing(o.HealthAddresses != nil)
	return a
}

// runWith runs an agent as the program does, and returns 1 for any error.
func runWith(ctx context.Context, o *Options, log io.Writer) int {
	l := NewLog(o, log)
	defer l.Close()
	err := Run(ctx, o, l)
	l.TellEnd(err)
	if err != nil {
		return 1
	}
	return 0
}

// options returns the defaults of the flags, with the given file and with free addresses.
func options(file string, set ...func(*Options)) *Options {
	o := &Options{
		ConfigFile:         file,
		AutoReloadInterval: 30 * time.Second,
		Web:                &toolkit.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0"}, WebSystemdSocket: new(bool), WebConfigFile: new(string)},
		HealthAddresses:    []string{"127.0.0.1:0"},
		TelemetryPath:      "/metrics",
		MaxRequests:        40,
		ClassicHistograms:  true,
		LogLevel:           "info",
		LogFormat:          "logfmt",
	}
	for _, f := range set {
		f(o)
	}
	return o
}

func failOpen(o *Options)     { o.FailOpen = true }
func retrySoon(o *Options)    { o.AutoReloadInterval = 20 * time.Millisecond }
func withRequests(o *Options) { o.EnableLifecycle = true }

// webConfig gives the web listener a web configuration.
func webConfig(file string) func(*Options) {
	return func(o *Options) { o.Web.WebConfigFile = &file }
}

// verbose makes the log complete, and JSON.
func verbose(o *Options) { o.LogLevel, o.LogFormat = "debug", "json" }

// infoLine matches the series that names the instance.
var infoLine = regexp.MustCompile(`prober_target_info\{[^}]*\}`)

// hostile listens and treats every client in the same bad way.
func hostile(t *testing.T, treat func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				treat(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

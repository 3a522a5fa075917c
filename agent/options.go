// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/prober-exporter/prober_exporter/agent/healthcheck"
	"github.com/prober-exporter/prober_exporter/config/frompod"
	"github.com/prober-exporter/prober_exporter/prober"
)

// Options holds the flags. Check validates them.
type Options struct {
	ConfigFile         string
	ConfigCheck        bool
	FailOpen           bool
	AutoReload         bool
	AutoReloadInterval time.Duration

	FromPod FromPodOptions
	Try     TryOptions

	Web             *toolkit.FlagConfig
	HealthAddresses []string
	HealthCheck     string
	IsHealthCheck   bool
	// HealthCheckFailOpen and HealthCheckWait change the health check.
	HealthCheckFailOpen bool
	HealthCheckWait     time.Duration
	Terminating         bool
	CopyTo              string
	IsCopy              bool
	TelemetryPath       string
	ExternalURL         *url.URL // nil: none
	RoutePrefix         string
	EnableLifecycle     bool
	LifecycleHosts      []string
	EnablePprof         bool
	MaxRequests         int
	NoOwnMetrics        bool
	ClassicHistograms   bool

	ShutdownDelay time.Duration
	MaxInFlight   int

	LogLevel, LogFormat string
}

// FromPodOptions holds the flags for the conversion of a manifest.
type FromPodOptions struct {
	Asked       bool
	File        string
	Rewrite     bool
	Restart     string // a name of frompod.Restarts
	Image       string
	HealthPort  int
	MetricsPort int
}

// TryOptions holds the flag that tries a configuration.
type TryOptions struct {
	Asked  bool
	Target string // empty: all
}

// Check sets the external URL, unless it is empty. It returns an error that names the first
// flag with a wrong value.
func (o *Options) Check(externalURL string) error {
	switch {
	case slices.Contains(append(*o.Web.WebListenAddresses, o.HealthAddresses...), ""):
		return errors.New("--web.listen-address and --health.listen-address must not be empty")
	case o.AutoReloadInterval <= 0:
		return fmt.Errorf("--config.auto-reload-interval must be greater than 0, is %v", o.AutoReloadInterval)
	case o.ShutdownDelay < 0:
		return fmt.Errorf("--shutdown.delay must not be negative, is %v", o.ShutdownDelay)
	case o.MaxRequests < 1:
		return fmt.Errorf("--web.max-requests must be at least 1, is %d", o.MaxRequests)
	case o.MaxInFlight < 0 || o.MaxInFlight > prober.HighestInFlight:
		return fmt.Errorf("--probe.max-in-flight must be between 0 and %d, is %d", prober.HighestInFlight, o.MaxInFlight)
	}
	if externalURL != "" {
		var err error
		if o.ExternalURL, err = healthcheck.ParseURL(externalURL); err != nil {
			return fmt.Errorf("--web.external-url: %w", err)
		}
	}
	return o.checkTasks()
}

// checkTasks is Check for the flags that make the process do one thing and exit, instead of
// serving.
func (o *Options) checkTasks() error {
	tasks := 0
	for _, asked := range []bool{o.FromPod.Asked, o.ConfigCheck, o.Try.Asked, o.IsHealthCheck, o.Terminating, o.IsCopy} {
		if asked {
			tasks++
		}
	}
	pod := o.FromPod
	switch {
	case pod.Asked && pod.File == "":
		return errors.New("--config.from-pod needs a file, or - for stdin")
	case tasks > 1:
		return errors.New("--config.from-pod, --config.check, --config.try, --health.check, --terminating and --copy-to exclude each other")
	case o.IsHealthCheck && o.HealthCheck == "" && !o.HealthCheckFailOpen:
		return errors.New("--health.check needs a URL")
	case !o.IsHealthCheck && (o.HealthCheckFailOpen || o.HealthCheckWait != 0):
		return errors.New("--health.check.fail-open and --health.check.wait need --health.check")
	case o.HealthCheckWait < 0:
		return fmt.Errorf("--health.check.wait must not be negative, is %v", o.HealthCheckWait)
	case o.IsCopy && o.CopyTo == "":
		return errors.New("--copy-to needs a directory")
	case !pod.Asked && pod.Rewrite:
		return errors.New("--config.from-pod.rewrite needs --config.from-pod")
	case !pod.Rewrite && pod.Restart != string(frompod.ByProbe):
		return errors.New("--config.from-pod.restart needs --config.from-pod.rewrite")
	case pod.Image == "":
		return errors.New("--config.from-pod.image must not be empty")
	case !isPort(pod.HealthPort):
		return fmt.Errorf("--config.from-pod.health-port must be between 1 and 65535, is %d", pod.HealthPort)
	case !isPort(pod.MetricsPort):
		return fmt.Errorf("--config.from-pod.metrics-port must be between 1 and 65535, is %d", pod.MetricsPort)
	case pod.HealthPort == pod.MetricsPort:
		return fmt.Errorf("--config.from-pod.health-port and --config.from-pod.metrics-port must differ, are both %d", pod.HealthPort)
	}
	return nil
}

func isPort(n int) bool { return 1 <= n && n <= 65535 }

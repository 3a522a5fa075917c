// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/prober-exporter/prober_exporter/agent"
	"github.com/prober-exporter/prober_exporter/agent/healthcheck"
)

// parse reads the flags. If done is true, the caller exits with code.
func parse(args []string, stderr io.Writer) (o *agent.Options, code int, done bool) {
	o = new(agent.Options)
	app := kingpin.New(filepath.Base(os.Args[0]), "Runs startup, readiness and liveness probes with the kubelet's own rules, "+
		"answers /ready, /live and /started, and exports what it sees to Prometheus.")
	app.UsageWriter(os.Stdout)
	app.ErrorWriter(stderr)
	app.Terminate(func(c int) { code, done = c, true })
	app.Version(version.Print("prober_exporter"))
	app.HelpFlag.Short('h')

	app.Flag("config.file", "Configuration file. With --config.try, - is stdin.").Default("prober.yml").StringVar(&o.ConfigFile)
	app.Flag("config.check", "Load the configuration and the web configuration, print every mistake and notice, and exit.").BoolVar(&o.ConfigCheck)
	app.Flag("config.try", "Make one attempt of each probe of the configuration, print a table, and exit with 0 if all attempts have succeeded, otherwise with 1. With =NAME, try this target only.").PlaceHolder("NAME").IsSetByUser(&o.Try.Asked).StringVar(&o.Try.Target)
	app.Flag("config.fail-open", "If a configuration is unreadable or invalid at start, run without it: probe nothing, and answer 200 at every /live.").BoolVar(&o.FailOpen)
	app.Flag("config.enable-auto-reload", "Reload when the content of the configuration file has changed.").BoolVar(&o.AutoReload)
	app.Flag("config.auto-reload-interval", "How often to check the file for a change.").Default("30s").DurationVar(&o.AutoReloadInterval)
	app.Flag("config.from-pod", "Convert the manifest of a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob, print the configuration, and exit. - is stdin.").PlaceHolder("FILE").IsSetByUser(&o.FromPod.Asked).StringVar(&o.FromPod.File)
	app.Flag("config.from-pod.rewrite", "Print the manifest instead of the configuration: with the agent as a sidecar, its configuration in a ConfigMap, and probes that ask the agent.").BoolVar(&o.FromPod.Rewrite)
	app.Flag("config.from-pod.restart", "Who restarts the containers of that manifest. probe: the kubelet, which asks the agent over HTTP and waits 30s for an agent that is away. exec: the kubelet, which runs the agent's client in the container. signal: the agent, which signals the application's process. With exec and signal an agent that is away restarts nobody.").Default(agent.Restarts()[0]).EnumVar(&o.FromPod.Restart, agent.Restarts()...)
	app.Flag("config.from-pod.image", "Image of the sidecar.").Default(agent.DefaultImage()).StringVar(&o.FromPod.Image)
	app.Flag("config.from-pod.health-port", "Port of the sidecar's health endpoints.").Default("9708").IntVar(&o.FromPod.HealthPort)
	app.Flag("config.from-pod.metrics-port", "Port of the sidecar's metrics.").Default("9709").IntVar(&o.FromPod.MetricsPort)
	o.Web = kingpinflag.AddFlags(app, healthcheck.WebAddress)
	app.Flag("health.listen-address", "Address on which to serve only the health endpoints: plain HTTP, no authentication, no rate limit. Repeatable.").StringsVar(&o.HealthAddresses)
	app.Flag("health.check", "Ask this URL once, print the body, and exit with 0 if the status is 200, otherwise with 1.").PlaceHolder("URL").IsSetByUser(&o.IsHealthCheck).StringVar(&o.HealthCheck)
	app.Flag("health.check.fail-open", "With --health.check: exit with 1 only if an agent's own answer 503 says that a target does not pass. Exit with 0 if nobody answers within 1s, or if the answer is anything else. For an exec probe in the application's container.").BoolVar(&o.HealthCheckFailOpen)
	app.Flag("health.check.wait", "With --health.check: ask again until the status is 200, or until this time is over: every 100ms for 5s, then every second. Print a line to stderr when the answer has changed. With --health.check.fail-open the last answer decides.").Default("0s").DurationVar(&o.HealthCheckWait)
	app.Flag("copy-to", "Copy this binary into a directory as prober_exporter, and exit. For an init container, from which another container gets the binary.").PlaceHolder("DIR").IsSetByUser(&o.IsCopy).StringVar(&o.CopyTo)
	app.Flag("terminating", "Tell the agent of this pod that the pod is being deleted: startup and liveness probes end, and every /live answers 200. For a preStop hook. Asks the addresses of --health.listen-address, otherwise of --web.listen-address, otherwise :9708 and :9709 on loopback. Waits 1s at most, and exits with 0 even if nobody answers.").BoolVar(&o.Terminating)
	app.Flag("web.telemetry-path", "Path under which to expose metrics.").Default("/metrics").StringVar(&o.TelemetryPath)
	externalURL := app.Flag("web.external-url", "URL at which browsers reach the exporter, for example through a reverse proxy.").PlaceHolder("URL").String()
	app.Flag("web.route-prefix", "Prefix of all paths. The health endpoints stay at the root as well. Default: the path of --web.external-url.").StringVar(&o.RoutePrefix)
	app.Flag("web.enable-lifecycle", "Allow HTTP requests that reload the configuration, probe a target at once, or begin a new instance, and heartbeats from other machines.").BoolVar(&o.EnableLifecycle)
	app.Flag("web.lifecycle-allowed-host", "Host name under which browsers may send the requests that --web.enable-lifecycle allows, in addition to localhost, IP addresses and the host of --web.external-url. Repeatable.").PlaceHolder("HOST").StringsVar(&o.LifecycleHosts)
	app.Flag("web.enable-pprof", "Serve /debug/pprof/.").BoolVar(&o.EnablePprof)
	app.Flag("web.max-requests", "Maximum number of parallel scrapes.").Default("40").IntVar(&o.MaxRequests)
	app.Flag("web.disable-exporter-metrics", "Leave out the metrics go_*, process_* and promhttp_*.").BoolVar(&o.NoOwnMetrics)
	app.Flag("metrics.classic-histograms", "Expose classic histogram buckets in addition to native ones. Without classic buckets a scrape as text is half as large, and only native histograms have quantiles.").Default("true").BoolVar(&o.ClassicHistograms)
	app.Flag("shutdown.delay", "How long to go on answering after SIGTERM before the listeners close.").Default("0s").DurationVar(&o.ShutdownDelay)
	app.Flag("probe.max-in-flight", "Maximum number of attempts at a time. The limit of open files may allow fewer. 0 means 8000.").Default("0").IntVar(&o.MaxInFlight)
	app.Flag("log.level", "Only log lines of this severity or above.").Default("info").EnumVar(&o.LogLevel, "debug", "info", "warn", "error")
	app.Flag("log.format", "Format of the log.").Default("logfmt").EnumVar(&o.LogFormat, "logfmt", "json")

	_, err := app.Parse(withValues(args))
	if done { // --help or --version
		return o, code, true
	}
	if err == nil {
		err = o.Check(*externalURL)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "prober_exporter: error: %v, try --help\n", err)
		return o, exitUsage, true
	}
	return o, exitOK, false
}

// withValues gives two flags their values in the form in which kingpin takes them: a separate
// argument -, which kingpin would take for a flag, and that of --config.try, which may have none.
func withValues(args []string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(args); i++ {
		switch flag := strings.TrimLeft(args[i], "-"); {
		case flag == "config.try":
			args[i] += "="
		case (flag == "config.from-pod" || flag == "config.file") && i+1 < len(args) && args[i+1] == "-":
			args[i] += "=-"
			args = slices.Delete(args, i+1, i+2)
		}
	}
	return args
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// The prober_exporter command runs startup, readiness and liveness probes with the
// kubelet's own rules, answers health checks, and exports what it sees to Prometheus.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/go-kit/log"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
	sloggokit "github.com/tjhop/slog-gokit"

	"github.com/prober-exporter/prober_exporter/logqueue"
	"github.com/prober-exporter/prober_exporter/prober"
)

// The exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// logPatience is how long an exit waits for the log to be written.
const logPatience = time.Second

// errUsage marks an error of the flags, errTold one that the log has told of.
var (
	errUsage = errors.New("bad flags")
	errTold  = errors.New("there is no configuration to run with")
)

func main() {
	// Whoever reads our log may go away; without this, the next line would kill us. A
	// handler, unlike ignoring the signal, is not inherited by exec probes.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], os.Stderr))
}

// run is the whole process: it returns its exit code once everything that it
// started has ended. When ctx is done it stops as on SIGTERM.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	o, code, done := parse(args, stderr)
	if done {
		return code
	}
	switch {
	case o.configCheck:
		return configCheck(o, stderr)
	case o.terminating:
		tellTerminating(ctx, o, stderr)
		return exitOK
	case o.isFromPod:
		return fromPod(o, os.Stdin, os.Stdout, stderr)
	}
	lines := logqueue.New(stderr, func(n uint64) []byte { return lostLines(o, n) })
	defer lines.Close(logPatience)
	logger := newLogger(o, lines)
	slog.SetDefault(logger) // net/http tells of some oddities by the standard log alone
	var err error
	if o.isHealthCheck {
		err = healthCheck(ctx, o.healthCheck, os.Stdout)
	} else {
		logger.Info("starting prober_exporter", "version", version.Info(), "build_context", version.BuildContext())
		err = serve(ctx, o, logger, lines.Dropped)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintf(lines, "prober_exporter: error: %v, try --help\n", err)
		return exitUsage
	case !errors.Is(err, errTold):
		logger.Error("prober_exporter ends", "err", err)
	}
	return exitError
}

// options are the flags, parsed and checked.
type options struct {
	configFile         string
	configCheck        bool
	failOpen           bool
	autoReload         bool
	autoReloadInterval time.Duration

	fromPod        string
	isFromPod      bool
	fromPodRewrite bool
	fromPodImage   string
	fromPodHealth  int
	fromPodMetrics int

	web             *toolkit.FlagConfig
	healthAddresses []string
	healthCheck     string
	isHealthCheck   bool
	terminating     bool
	telemetryPath   string
	externalURL     *url.URL
	routePrefix     string
	lifecycle       bool
	lifecycleHosts  []string
	pprof           bool
	maxRequests     int
	noOwnMetrics    bool
	classic         bool

	shutdownDelay time.Duration
	maxInFlight   int

	logLevel, logFormat string
}

// parse reads the flags. If done, there is nothing more to do than to exit with code.
func parse(args []string, stderr io.Writer) (o *options, code int, done bool) {
	o = new(options)
	app := kingpin.New(filepath.Base(os.Args[0]), "Runs startup, readiness and liveness probes with the kubelet's own rules, "+
		"answers /ready, /live and /started, and exports what it sees to Prometheus.")
	app.UsageWriter(os.Stdout)
	app.ErrorWriter(stderr)
	app.Terminate(func(c int) { code, done = c, true })
	app.Version(version.Print("prober_exporter"))
	app.HelpFlag.Short('h')

	app.Flag("config.file", "Configuration file.").Default("prober.yml").StringVar(&o.configFile)
	app.Flag("config.check", "Load the configuration and the web configuration, print every mistake and warning, and exit.").BoolVar(&o.configCheck)
	app.Flag("config.fail-open", "Go on, and call every target live, when a configuration is unreadable or invalid at start.").BoolVar(&o.failOpen)
	app.Flag("config.enable-auto-reload", "Reload when the content of the configuration file has changed.").BoolVar(&o.autoReload)
	app.Flag("config.auto-reload-interval", "How often to look for a change.").Default("30s").DurationVar(&o.autoReloadInterval)
	app.Flag("config.from-pod", "Print the configuration that the manifest of a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob comes to, and exit. - is stdin.").PlaceHolder("FILE").IsSetByUser(&o.isFromPod).StringVar(&o.fromPod)
	app.Flag("config.from-pod.rewrite", "Print the manifest instead, with the agent as a sidecar, its configuration in a ConfigMap, and the probes pointed at it.").BoolVar(&o.fromPodRewrite)
	app.Flag("config.from-pod.image", "Image of that sidecar.").Default(defaultImage()).StringVar(&o.fromPodImage)
	app.Flag("config.from-pod.health-port", "Port of that sidecar's health endpoints.").Default("9708").IntVar(&o.fromPodHealth)
	app.Flag("config.from-pod.metrics-port", "Port of that sidecar's metrics.").Default("9709").IntVar(&o.fromPodMetrics)
	o.web = kingpinflag.AddFlags(app, defaultWeb)
	app.Flag("health.listen-address", "Addresses on which to serve the health endpoints alone: plain HTTP, no authentication, no rate limit. Repeatable.").StringsVar(&o.healthAddresses)
	app.Flag("health.check", "Ask this URL once, print the body, and exit with 0 if the status is 200.").PlaceHolder("URL").IsSetByUser(&o.isHealthCheck).StringVar(&o.healthCheck)
	app.Flag("terminating", "Tell the agent of this pod that the pod is being deleted: its startup and liveness probes end, every live answers 200. For a preStop hook: asks the addresses of --health.listen-address, else of --web.listen-address, else :9708 and :9709 on loopback, waits 1s at most, and exits with 0 even if nobody answers.").BoolVar(&o.terminating)
	app.Flag("web.telemetry-path", "Path under which to expose metrics.").Default("/metrics").StringVar(&o.telemetryPath)
	externalURL := app.Flag("web.external-url", "The URL under which the exporter is reachable, for example behind a reverse proxy.").PlaceHolder("URL").String()
	app.Flag("web.route-prefix", "Prefix of all paths but the health endpoints', which are at the root as well. Default: the path of --web.external-url.").StringVar(&o.routePrefix)
	app.Flag("web.enable-lifecycle", "Allow reload, manual triggers and new instances by HTTP request.").BoolVar(&o.lifecycle)
	app.Flag("web.lifecycle-allowed-host", "Host name under which a browser may use what --web.enable-lifecycle allows, beside localhost, IP addresses and the host of --web.external-url. Repeatable.").PlaceHolder("HOST").StringsVar(&o.lifecycleHosts)
	app.Flag("web.enable-pprof", "Serve /debug/pprof/.").BoolVar(&o.pprof)
	app.Flag("web.max-requests", "Parallel scrapes at most.").Default("40").IntVar(&o.maxRequests)
	app.Flag("web.disable-exporter-metrics", "Leave out go_*, process_* and promhttp_*.").BoolVar(&o.noOwnMetrics)
	app.Flag("metrics.classic-histograms", "Expose histograms with classic buckets beside the native ones. Without them quantiles are to be had from native histograms alone, and a scrape is half as large as text.").Default("true").BoolVar(&o.classic)
	app.Flag("shutdown.delay", "After SIGTERM: how long to go on answering before the listeners close.").Default("0s").DurationVar(&o.shutdownDelay)
	app.Flag("probe.max-in-flight", "Attempts at a time at most, beside what the limit of open files allows. 0: 8000.").Default("0").IntVar(&o.maxInFlight)
	app.Flag("log.level", "Only log lines of this severity or above.").Default("info").EnumVar(&o.logLevel, "debug", "info", "warn", "error")
	app.Flag("log.format", "Format of the log.").Default("logfmt").EnumVar(&o.logFormat, "logfmt", "json")

	_, err := app.Parse(stdinArgument(args))
	if done { // --help or --version
		return o, code, true
	}
	if err == nil {
		err = o.check(*externalURL)
	}
	if err == nil {
		err = o.checkFromPod()
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "prober_exporter: error: %v, try --help\n", err)
		return o, exitUsage, true
	}
	return o, exitOK, false
}

// check says which flag cannot be.
func (o *options) check(externalURL string) error {
	switch {
	case o.isHealthCheck && o.healthCheck == "":
		return errors.New("--health.check needs a URL")
	case slices.Contains(append(*o.web.WebListenAddresses, o.healthAddresses...), ""):
		return errors.New("an address to listen on must not be empty")
	case o.autoReloadInterval <= 0:
		return fmt.Errorf("--config.auto-reload-interval must be greater than 0, is %v", o.autoReloadInterval)
	case o.shutdownDelay < 0:
		return fmt.Errorf("--shutdown.delay must not be negative, is %v", o.shutdownDelay)
	case o.maxRequests < 1:
		return fmt.Errorf("--web.max-requests must be at least 1, is %d", o.maxRequests)
	case o.maxInFlight < 0 || o.maxInFlight > prober.HighestInFlight:
		return fmt.Errorf("--probe.max-in-flight must be between 0 and %d, is %d", prober.HighestInFlight, o.maxInFlight)
	}
	if externalURL == "" {
		return nil
	}
	var err error
	if o.externalURL, err = parseURL(externalURL); err != nil {
		return fmt.Errorf("--web.external-url: %w", err)
	}
	return nil
}

// parseURL returns a URL that HTTP can ask.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if !strings.Contains(text, "://") || err == nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		err = errors.New("must be an http or https URL with a host")
	}
	return u, err
}

// newLogger returns the one log, written through go-kit as all of Prometheus' were, each
// line in one go: w must be safe for concurrent use.
func newLogger(o *options, w io.Writer) *slog.Logger {
	sink := log.NewLogfmtLogger(w)
	if o.logFormat == "json" {
		sink = log.NewJSONLogger(w)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(o.logLevel))); err != nil {
		level = slog.LevelInfo // parse lets no other name through
	}
	return slog.New(sloggokit.NewGoKitHandler(sink, level))
}

// lostLines returns the line that stands for lost ones, whatever level is logged.
func lostLines(o *options, n uint64) []byte {
	var line bytes.Buffer
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were lost here: they could not be written in time", 0)
	r.Add("lines", n)
	_ = newLogger(o, &line).Handler().Handle(context.Background(), r) // a buffer takes everything
	return line.Bytes()
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package web answers HTTP requests: whether targets are started, ready and live, the
// details of targets, and the exporter's own pages.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// Prober is the handlers' view of the prober; *prober.Manager implements it. Its methods are
// safe for concurrent use. Methods that return a state wait for no attempt and no reload: the
// health endpoints rely on this.
type Prober interface {
	// Summary returns the state of all targets in constant time.
	Summary() prober.Summary
	// Status returns a snapshot of all targets.
	Status(prober.Detail) prober.Status
	// Target returns the status of one target; false if no target has that name.
	Target(name string, d prober.Detail) (prober.TargetStatus, bool)
	// Removed reports whether a reload has removed the target. It may forget old names.
	Removed(name string) bool
	// Asked reports a kubelet's question about a target, by the kubelet's probe of that
	// kind: so the target's container runs.
	Asked(name string, k gate.Kind)
	// Overdue names the probes, as target/kind, whose turn is overdue.
	Overdue() []string
	// Waiting names the probes, as target/kind, that wait for the end of an attempt from
	// before a reload.
	Waiting() []string
	// Probe makes each probe of a target take a turn now, false if there is no such
	// target.
	Probe(name string) bool
	// Beat records a beat of a target, for its heartbeat probes without a file that have this
	// name or, if probe is empty, that have none. It returns false if there is no such probe.
	Beat(name, probe string) bool
	// Terminate reports that the pod is being deleted: liveness and startup probes end
	// for good, readiness goes on.
	Terminate()
	// NewInstance declares that a target has been restarted, false if there is no
	// such target.
	NewInstance(name string) bool
}

// Options are the options of a Server. All functions, Prober, Metrics and TelemetryPath
// are required.
type Options struct {
	Prober Prober
	// Restarter knows the targets that have a restart block. Nil: there are none.
	Restarter Restarter
	Logger    *slog.Logger // nil: nothing is logged

	// Metrics answers a scrape, at TelemetryPath under the prefix.
	Metrics       http.Handler
	TelemetryPath string
	// Config returns the running configuration as YAML, without its secrets. It is
	// called only while a configuration is loaded.
	Config func() ([]byte, error)
	// TargetConfig returns one target of the running configuration in the same way.
	TargetConfig func(name string) ([]byte, error)
	// LastLoad returns how the last load of a configuration ended.
	LastLoad func() Load
	// Reload loads the configuration again. The client sees its error.
	Reload func(context.Context) error

	// UnknownTarget, if not nil, counts a request of a health endpoint for a target that
	// is not configured.
	UnknownTarget func(endpoint string)

	// ExternalURL is the URL at which browsers reach the exporter, nil if unknown.
	ExternalURL *url.URL
	// RoutePrefix is the prefix of all paths. The health endpoints are at the root as
	// well. Empty means the path of ExternalURL.
	RoutePrefix string

	EnableLifecycle, EnablePprof bool
	// LifecycleHosts are host names under which a browser may use the lifecycle API,
	// beside ExternalURL's, localhost and IP addresses.
	LifecycleHosts []string
}

// Load is how the last load of a configuration ended.
type Load struct {
	File string
	// At is when the load ended, zero if there was none. Err is why the file was refused.
	At  time.Time
	Err error
	// Applied is when the running configuration was loaded, zero if none runs.
	Applied time.Time
}

// writeTimeout bounds how long a response may take: a client that does not read must not
// keep a connection and its response for ever.
const writeTimeout = 30 * time.Second

// maxBody bounds the body of a request. No endpoint needs a body.
const maxBody = 4 << 10

// cleanPath matches a path that can be part of a ServeMux pattern as it is.
var cleanPath = regexp.MustCompile(`^(/[-._~a-zA-Z0-9]+)+$`)

// Server makes the handlers of all listeners.
type Server struct {
	opts     Options
	prefix   string // empty, or a path without a slash at its end
	browsers *browsers

	mu   sync.Mutex
	told map[string]bool // unknown targets that the log has named
}

// New returns a server, or an error if a path cannot be served.
func New(opts Options) (*Server, error) {
	s := &Server{opts: opts, told: map[string]bool{}}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	prefix := opts.RoutePrefix
	if external := opts.ExternalURL; external != nil {
		if prefix == "" {
			prefix = external.Path
		}
	}
	var err error
	if s.browsers, err = newBrowsers(opts.ExternalURL, opts.LifecycleHosts); err != nil {
		return nil, err
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		s.prefix = "/" + prefix
		if err := free(s.prefix); err != nil {
			return nil, fmt.Errorf("route prefix %q: %w", s.prefix, err)
		}
	}
	if err := free(opts.TelemetryPath, "api", "config", "debug", "static", "targets"); err != nil {
		return nil, fmt.Errorf("telemetry path %q: %w", opts.TelemetryPath, err)
	}
	return s, nil
}

// free returns why a path cannot be served, or nil. A path can be served if it is clean
// and begins neither with a health endpoint's name nor with one of the taken names.
func free(p string, taken ...string) error {
	if !cleanPath.MatchString(p) || path.Clean(p) != p {
		return errors.New("must be a path of letters, digits and -._~ that begins with /")
	}
	first, _, _ := strings.Cut(p[1:], "/")
	taken = append(append(taken, "-", heartbeatEndpoint), HealthEndpoints()...)
	if slices.Contains(taken, first) {
		return fmt.Errorf("/%s is taken", first)
	}
	return nil
}

// HealthHandler answers only the health endpoints and beats.
func (s *Server) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	s.addHealthEverywhere(mux, http.HandlerFunc(refuseBeat))
	return guard(mux)
}

// addHealthEverywhere adds the health endpoints at the root, where a kubelet asks,
// and under the prefix, where everything else is. Likewise it adds the endpoint for beats;
// elsewhere answers clients that are not beside the agent.
func (s *Server) addHealthEverywhere(mux *http.ServeMux, elsewhere http.Handler) {
	for _, prefix := range slices.Compact([]string{"", s.prefix}) {
		s.addHealth(mux, prefix)
		s.addHeartbeat(mux, prefix, elsewhere)
	}
}

// Handler answers all requests: the health endpoints and beats at the root and under the
// prefix, everything else under the prefix.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.addHealthEverywhere(mux, s.lifecycle(s.beat))
	if s.prefix != "" {
		mux.Handle("GET /{$}", http.RedirectHandler(s.prefix+"/", http.StatusFound))
	}
	s.addAPI(mux, s.prefix)
	return guard(mux)
}

// guard wraps every handler. It bounds the time of a response and the size of a request,
// and forbids caching and content sniffing.
func guard(h http.Handler) http.Handler {
	h = http.MaxBytesHandler(h, maxBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeWithin(w, writeTimeout)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// writeWithin sets the time by which the response must be written: d from now, or never
// if d is 0.
func writeWithin(w http.ResponseWriter, d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	// A writer without deadlines does not come from net/http, and has nothing to bound.
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
}

// display returns a name from a request in a form that may be shown: as it is if a target
// could have this name, otherwise quoted, and never longer than a target's name may be.
func display(name string) string {
	const most = 63
	cut := name
	if len(cut) > most {
		cut = cut[:most] + "…"
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return fmt.Sprintf("%+q", cut)
		}
	}
	if name == "" {
		return `""`
	}
	return cut
}

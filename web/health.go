// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
)

// check is one of the three questions about targets.
type check struct {
	name string // also its path
	kind gate.Kind
	// passing returns how many targets pass, holds whether a target passes.
	passing func(prober.Summary) int
	holds   func(*prober.TargetStatus) bool
	// why returns why a target fails, changed when the target last began to pass or fail.
	why     func(*prober.TargetStatus) finding
	changed func(*prober.TargetStatus) time.Time
}

var (
	started = check{
		"started", gate.Startup,
		func(s prober.Summary) int { return s.Started },
		func(t *prober.TargetStatus) bool { return t.Started },
		whyNotStarted,
		func(t *prober.TargetStatus) time.Time { return t.Changed.Started },
	}
	ready = check{
		"ready", gate.Readiness,
		func(s prober.Summary) int { return s.Ready },
		func(t *prober.TargetStatus) bool { return t.Ready },
		whyNotReady,
		func(t *prober.TargetStatus) time.Time { return t.Changed.Ready },
	}
	live = check{
		"live", gate.Liveness,
		func(s prober.Summary) int { return s.Live },
		func(t *prober.TargetStatus) bool { return t.Live },
		whyNotLive,
		func(t *prober.TargetStatus) time.Time { return t.Changed.Live },
	}
	checks = [...]*check{&started, &ready, &live}
)

// HealthEndpoints returns the names of the endpoints that answer about targets.
func HealthEndpoints() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// The states of the agent itself.
const (
	noConfiguration = "no configuration"
	agentStopping   = "agent stopping"
	podTerminating  = "pod terminating"
)

// addHealth adds the health endpoints. They answer from counters and copies: no I/O,
// no waiting, whatever state the probes are in.
func (s *Server) addHealth(mux *http.ServeMux, prefix string) {
	for _, c := range checks {
		mux.HandleFunc("GET "+prefix+"/"+c.name, func(w http.ResponseWriter, r *http.Request) {
			s.aggregate(c, r).write(w, r)
		})
		mux.HandleFunc("GET "+prefix+"/"+c.name+"/{target}", func(w http.ResponseWriter, r *http.Request) {
			s.single(c, r).write(w, r)
		})
	}
	mux.HandleFunc("GET "+prefix+"/-/healthy", func(w http.ResponseWriter, r *http.Request) {
		s.agentHealthy(isVerbose(r)).write(w, r)
	})
	mux.HandleFunc("GET "+prefix+"/-/ready", func(w http.ResponseWriter, r *http.Request) {
		s.agentReady().write(w, r)
	})
	mux.HandleFunc("POST "+prefix+"/-/terminating", s.terminating)
}

// ownState answers a check from the agent's own state, if that state decides the check.
// The agent's own state never fails a liveness check: a kubelet would kill the
// application because of the agent.
func ownState(c *check, sum prober.Summary) *report {
	var reason string
	switch {
	case !sum.Loaded:
		reason = noConfiguration
	case sum.Stopping && c == &live:
		reason = agentStopping
	case sum.Terminating && c == &live:
		reason = podTerminating
	default:
		return nil
	}
	if c == &live {
		return &report{Check: c.name, OK: true, Warnings: []warning{{"", reason}}}
	}
	return &report{Check: c.name, Reason: reason}
}

// aggregate answers for all targets, or for the targets that the query selects. If all
// targets pass and the answer lists none, aggregate takes constant time.
func (s *Server) aggregate(c *check, r *http.Request) *report {
	sum := s.opts.Prober.Summary()
	if rep := ownState(c, sum); rep != nil {
		return rep
	}
	if c == &ready && sum.Stopping {
		return &report{Check: c.name, Reason: agentStopping}
	}
	s.tellAskedTogether(r, c, sum)
	var (
		query    = r.URL.Query()
		verbose  = query.Has("verbose")
		rep      = &report{Check: c.name, OK: true}
		excluded = s.known(query["exclude"], rep)
		named    = s.known(query["target"], rep)
	)
	if len(named.unknown) > 0 {
		s.countUnknown(c, named.unknown...)
	}
	if c.passing(sum) == sum.Targets && !verbose {
		return rep
	}
	for _, t := range s.selected(query, named) {
		if !excluded.has(t.Name) {
			rep.add(c, &t, verbose)
		}
	}
	s.addRestarts(c, rep, verbose)
	return rep
}

// selected returns the targets that the query names, all if it names none.
func (s *Server) selected(query url.Values, named names) []prober.TargetStatus {
	if !query.Has("target") {
		return s.opts.Prober.Status(prober.Brief).Statuses
	}
	return named.statuses
}

// names are targets that a query names, each once and in its order.
type names struct {
	statuses []prober.TargetStatus
	unknown  []string
	seen     map[string]bool
}

func (n names) has(name string) bool { return n.seen[name] }

// known looks up the targets of a query. An unknown name gets a warning line: a target
// that a reload removed must not fail the check of whoever still asks for the target.
func (s *Server) known(of []string, rep *report) names {
	if len(of) == 0 {
		return names{}
	}
	n := names{seen: make(map[string]bool, len(of))}
	for _, name := range of {
		if n.seen[name] {
			continue
		}
		n.seen[name] = true
		if t, ok := s.opts.Prober.Target(name, prober.Brief); ok {
			n.statuses = append(n.statuses, t)
		} else {
			n.unknown = append(n.unknown, name)
			rep.warn(warning{display(name), "unknown target"})
		}
	}
	return n
}

// single answers for one target. Doubt kills nobody: an unknown name is live.
func (s *Server) single(c *check, r *http.Request) *report {
	if rep := ownState(c, s.opts.Prober.Summary()); rep != nil {
		return rep
	}
	name := r.PathValue("target")
	t, ok := s.opts.Prober.Target(name, prober.Brief)
	if !ok {
		removed := s.opts.Prober.Removed(name)
		// A reload may have brought the target back between the two calls.
		if t, ok = s.opts.Prober.Target(name, prober.Brief); !ok {
			return s.unknown(c, name, removed)
		}
	}
	s.tellAsked(r, c, name)
	rep := &report{Check: c.name, OK: true}
	rep.add(c, &t, isVerbose(r))
	s.addRestarts(c, rep, isVerbose(r))
	return rep
}

// unknown answers for a target that is not configured.
func (s *Server) unknown(c *check, name string, removed bool) *report {
	s.countUnknown(c, name)
	if c != &live {
		return &report{Check: c.name, Reason: display(name) + " unknown target", notFound: true}
	}
	what := "unknown target: not probed"
	if removed {
		what = "removed: not probed"
	}
	return &report{Check: c.name, OK: true, Warnings: []warning{{display(name), what}}}
}

// maxTold bounds how many unknown targets the log names: anybody can ask for any name.
const maxTold = 1000

// countUnknown counts a request for targets that are not configured. The log names each
// such target once whose liveness somebody asks for: nothing else would show that nobody
// protects it.
func (s *Server) countUnknown(c *check, of ...string) {
	if s.opts.UnknownTarget != nil {
		s.opts.UnknownTarget(c.name)
	}
	if c != &live {
		return
	}
	for _, name := range of {
		s.warnUnknown(display(name))
	}
}

func (s *Server) warnUnknown(name string) {
	s.mu.Lock()
	told := s.told[name] || len(s.told) == maxTold
	if !told {
		s.told[name] = true
	}
	last := !told && len(s.told) == maxTold
	s.mu.Unlock()
	if told {
		return
	}
	s.opts.Logger.Warn("somebody asks for the liveness of an unknown target, which is not probed and counts as live", "target", name)
	if last {
		s.opts.Logger.Warn("the log names no further unknown targets", "told", maxTold)
	}
}

// agentReady answers whether a configuration is loaded and the agent is not stopping.
func (s *Server) agentReady() *report {
	rep := &report{Check: "agent ready"}
	switch sum := s.opts.Prober.Summary(); {
	case sum.Stopping:
		rep.Reason = agentStopping
	case !sum.Loaded:
		rep.Reason = noConfiguration
	default:
		rep.OK = true
	}
	return rep
}

// Healthy reports whether /-/healthy answers 200.
func (s *Server) Healthy() bool { return s.agentHealthy(false).OK }

// agentHealthy answers whether the turns of all probes come on time.
func (s *Server) agentHealthy(verbose bool) *report {
	rep := &report{Check: "agent healthy", OK: true}
	for _, probe := range s.opts.Prober.Waiting() {
		rep.warn(warning{probe, "waits for the end of an attempt from before a reload"})
	}
	for _, probe := range s.opts.Prober.Overdue() {
		target, of, _ := strings.Cut(probe, "/")
		kind, member, _ := strings.Cut(of, "/")
		rep.fail(targetReport{Name: target, finding: finding{Kind: kind, Probe: member, Reason: "overdue"}}, verbose)
	}
	return rep
}

func isVerbose(r *http.Request) bool { return r.URL.Query().Has("verbose") }

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/prober-exporter/prober_exporter/gate"
)

// Restart says how the agent restarts a target that is not live: exactly one of the four
// handlers is set.
type Restart struct {
	Signal  *RestartSignal
	Docker  *RestartDocker
	Systemd *RestartSystemd
	Exec    *Exec // runs in the agent's own file system, whatever the source

	// GracePeriod is the time from the first signal to SIGKILL. A probe's own
	// terminationGracePeriodSeconds wins: see Target.GracePeriod.
	GracePeriod time.Duration

	BackOff BackOff
	Limit   Limit
	DryRun  bool
}

// RestartSignal signals the process of the instance; whoever supervises the process starts the
// next one.
type RestartSignal struct {
	StopSignal string // a name such as SIGTERM
}

// RestartDocker asks the Docker Engine for a restart of the container.
type RestartDocker struct{}

// RestartSystemd asks systemd for a restart of a service.
type RestartSystemd struct {
	Unit string // a valid name, with its suffix .service
}

// BackOff is the least time between two restarts: Initial after the first, twice as long after
// each further restart, up to Max. The agent forgets the restarts after Reset without one.
// Initial is not longer than Max, and Max not longer than Reset.
type BackOff struct{ Initial, Max, Reset time.Duration }

// Limit bounds the restarts within any Window. The zero value is no limit.
type Limit struct {
	Restarts int // at most MaxLimit
	Window   time.Duration
}

// MaxLimit is the largest number of restarts that a Limit may have.
const MaxLimit = 100

// The kubelet's values: a pod's terminationGracePeriodSeconds, and the CrashLoopBackOff.
const (
	defaultGracePeriod    = 30 * time.Second
	defaultInitialBackOff = 10 * time.Second
	defaultMaxBackOff     = 300 * time.Second
	defaultResetBackOff   = 600 * time.Second
	defaultStopSignal     = "SIGTERM"
)

// restartHandler is a handler as the file has it: a row of the table of handlers.
type restartHandler struct {
	name string
	is   func(r *Restart) bool
	// decode sets the handler of the block of t.
	decode func(d *decoder, v value, r *Restart, t *Target)
	fill   func(r *Restart, n *yaml.Node)
	// sources are the sources whose instances the handler can restart; nil: all but static.
	sources []string
}

// restartHandlers is the table of handlers, in the order of the documentation.
var restartHandlers = []restartHandler{
	{
		name:    "signal",
		is:      func(r *Restart) bool { return r.Signal != nil },
		decode:  func(d *decoder, v value, r *Restart, _ *Target) { r.Signal = d.restartSignal(v) },
		fill:    func(r *Restart, n *yaml.Node) { add(n, "stopSignal", text(r.Signal.StopSignal)) },
		sources: []string{SourceProcess},
	},
	{
		name: "docker",
		is:   func(r *Restart) bool { return r.Docker != nil },
		decode: func(d *decoder, v value, r *Restart, _ *Target) {
			if _, ok := d.object(v); ok {
				r.Docker = &RestartDocker{}
			}
		},
		fill:    func(*Restart, *yaml.Node) {},
		sources: []string{SourceDocker},
	},
	{
		name:   "systemd",
		is:     func(r *Restart) bool { return r.Systemd != nil },
		decode: func(d *decoder, v value, r *Restart, _ *Target) { r.Systemd = d.restartSystemd(v) },
		fill:   func(r *Restart, n *yaml.Node) { add(n, "unit", text(r.Systemd.Unit)) },
	},
	{
		name: "exec",
		is:   func(r *Restart) bool { return r.Exec != nil },
		decode: func(d *decoder, v value, r *Restart, t *Target) {
			// Without t's source: the command never runs in the target's container.
			r.Exec = d.exec(v, &Target{Env: t.Env})
		},
		fill: func(r *Restart, n *yaml.Node) { r.Exec.fill(n) },
	},
}

// RestartHandlers returns the names of all handlers, in the order of the documentation.
func RestartHandlers() []string {
	names := make([]string, len(restartHandlers))
	for i, h := range restartHandlers {
		names[i] = h.name
	}
	return names
}

// Handler names the handler as the file spells it: signal, docker, systemd or exec.
func (r *Restart) Handler() string {
	if h := r.handler(); h != nil {
		return h.name
	}
	return ""
}

// handler returns the row of r's handler; nil if r has none.
func (r *Restart) handler() *restartHandler {
	i := slices.IndexFunc(restartHandlers, func(h restartHandler) bool { return h.is(r) })
	if i < 0 {
		return nil
	}
	return &restartHandlers[i]
}

// leastGracePeriod is the shortest grace period that a kubelet gives any container.
const leastGracePeriod = 2 * time.Second

// GracePeriod returns the time from the first signal to SIGKILL after a failure of a probe: the
// probe's own or that of the restart block, and never less than 2 s, as in a kubelet.
func (t *Target) GracePeriod(k gate.Kind, name string) time.Duration {
	grace := t.Restart.GracePeriod
	if p := t.Named(k, name); p != nil && p.TerminationGracePeriodSeconds != nil {
		const most = math.MaxInt32 // seconds, as everywhere in the file
		grace = time.Duration(min(*p.TerminationGracePeriodSeconds, most)) * time.Second
	}
	return max(grace, leastGracePeriod)
}

// restart returns the restart block of t, whose environment is known already; nil if there is
// none. The method checkRestart does the part that depends on the source and the probes.
func (d *decoder) restart(v value, t *Target) *Restart {
	if !v.set() {
		return nil
	}
	o, ok := d.object(v, append(RestartHandlers(), "terminationGracePeriodSeconds", "backOff", "limit", "dryRun")...)
	if !ok {
		return nil
	}
	r := &Restart{
		GracePeriod: cmp.Or(d.seconds(o.get("terminationGracePeriodSeconds")), defaultGracePeriod),
		BackOff:     d.backOff(o.get("backOff")),
		Limit:       d.limit(o.get("limit")),
		DryRun:      d.boolean(o.get("dryRun")),
	}
	found := 0
	for _, h := range restartHandlers {
		if v := o.get(h.name); v.set() {
			if found++; found == 1 {
				h.decode(d, v, r, t)
			}
		}
	}
	if found != 1 {
		d.wrong(v, "must have exactly one of %s", strings.Join(RestartHandlers(), ", "))
	}
	return r
}

// checkRestart checks that the agent sees the instances that it is to restart, and that a
// probe can give the verdict. v is the block of t, whose source and probes are known.
func (d *decoder) checkRestart(v value, t *Target) {
	if t.Restart == nil {
		return
	}
	source, why := t.Instance.Source, t.Instance.Source
	if t.Instance.Auto {
		why = sourceAuto + ", which is " + source + ": " + t.Instance.Why
	}
	switch h := t.Restart.handler(); {
	case source == SourceStatic:
		d.wrong(v, "needs a source that sees instances, is source: %s", why)
	case h != nil && h.sources != nil && !slices.Contains(h.sources, source):
		d.wrong(v, "%s needs source: %s, is source: %s", h.name, strings.Join(h.sources, " or "), why)
	}
	if len(t.Of(gate.Startup)) == 0 && len(t.Of(gate.Liveness)) == 0 {
		d.wrong(v, "needs a startupProbe or a livenessProbe, whose failure is the verdict")
	}
}

// noticeDrain warns, in a pod, of restarts that could cut a drain short: the agent learns that
// the pod is being deleted from a preStop hook, which it cannot see beforehand, or from the API
// server. items are the targets of c.
func (d *decoder) noticeDrain(items []value, c *Config) {
	if host, _ := d.lookupEnv("KUBERNETES_SERVICE_HOST"); host == "" || d.failed() {
		return
	}
	if c.Kubernetes != nil || slices.ContainsFunc(c.Targets, func(t Target) bool { return t.Instance.Source == SourceKubernetes }) {
		return
	}
	for i := range c.Targets {
		if c.Targets[i].Restart == nil {
			continue
		}
		v := d.newObject(items[i]).get("restart")
		d.noticef(Warn, v.line, v.path(), "the agent does not see that its pod is being deleted, and could restart a target that drains: "+
			"give the agent's container a preStop hook that runs prober_exporter --terminating (then this notice does not matter), or add the key kubernetes or a target with source: kubernetes")
		return // once for a file
	}
}

func (d *decoder) restartSignal(v value) *RestartSignal {
	o, ok := d.object(v, "stopSignal")
	if !ok {
		return nil
	}
	v = o.get("stopSignal")
	s, ok := d.str(v)
	if ok && v.set() && !validSignal(s) {
		d.wrong(v, "must be the name of a signal, such as SIGTERM, is %s", quote(s))
	}
	return &RestartSignal{StopSignal: cmp.Or(s, defaultStopSignal)}
}

func (d *decoder) restartSystemd(v value) *RestartSystemd {
	o, ok := d.object(v, "unit")
	if !ok {
		return nil
	}
	v = o.get("unit")
	s, ok := d.str(v)
	switch {
	case !ok:
	case s == "":
		d.wrong(v, required)
	default:
		if err := ValidUnit(s); err != nil {
			d.wrong(v, "%v", err)
		}
	}
	return &RestartSystemd{Unit: s}
}

// backOff returns the back-off. An order of the three that would let two restarts come closer
// than the back-off is a mistake.
func (d *decoder) backOff(v value) BackOff {
	b := BackOff{Initial: defaultInitialBackOff, Max: defaultMaxBackOff, Reset: defaultResetBackOff}
	if !v.set() {
		return b
	}
	o, ok := d.object(v, "initialSeconds", "maxSeconds", "resetSeconds")
	if !ok {
		return b
	}
	b.Initial = cmp.Or(d.seconds(o.get("initialSeconds")), b.Initial)
	b.Max = cmp.Or(d.seconds(o.get("maxSeconds")), max(b.Max, b.Initial))
	b.Reset = cmp.Or(d.seconds(o.get("resetSeconds")), max(b.Reset, b.Max))
	if b.Max < b.Initial {
		d.wrong(o.get("maxSeconds"), "must be at least initialSeconds, which is %s, is %s", formatSeconds(b.Initial), formatSeconds(b.Max))
	}
	if b.Reset < b.Max {
		d.wrong(o.get("resetSeconds"), "must be at least maxSeconds, which is %s, is %s", formatSeconds(b.Max), formatSeconds(b.Reset))
	}
	return b
}

func (d *decoder) limit(v value) Limit {
	if !v.set() {
		return Limit{}
	}
	o, ok := d.object(v, "restarts", "seconds")
	if !ok {
		return Limit{}
	}
	restarts, seconds := o.get("restarts"), o.get("seconds")
	if !restarts.set() {
		d.wrong(restarts, required)
	}
	l := Limit{Restarts: int(d.integer(restarts, 1, MaxLimit, positive, "must be less than or equal to "+strconv.Itoa(MaxLimit)))}
	before := d.mistakes()
	if l.Window = d.seconds(seconds); l.Window == 0 && before == d.mistakes() {
		d.wrong(seconds, required)
	}
	return l
}

// boolean returns a boolean: false if it is not set.
func (d *decoder) boolean(v value) bool {
	if !v.set() || !d.is(v, aBoolean) {
		return false
	}
	var b bool
	if err := v.node.Decode(&b); err != nil {
		d.wrong(v, "must be a boolean")
	}
	return b
}

// node returns the block as the file would have it.
func (r *Restart) node() *yaml.Node {
	n, handler := mapping(), mapping()
	if h := r.handler(); h != nil {
		h.fill(r, handler)
		add(n, h.name, handler)
	}
	add(n, "terminationGracePeriodSeconds", scalar(formatSeconds(r.GracePeriod)))
	backOff := mapping()
	add(backOff, "initialSeconds", scalar(formatSeconds(r.BackOff.Initial)))
	add(backOff, "maxSeconds", scalar(formatSeconds(r.BackOff.Max)))
	add(backOff, "resetSeconds", scalar(formatSeconds(r.BackOff.Reset)))
	add(n, "backOff", backOff)
	if r.Limit.Restarts > 0 {
		limit := mapping()
		add(limit, "restarts", integer(int64(r.Limit.Restarts)))
		add(limit, "seconds", scalar(formatSeconds(r.Limit.Window)))
		add(n, "limit", limit)
	}
	add(n, "dryRun", scalar(strconv.FormatBool(r.DryRun)))
	return n
}

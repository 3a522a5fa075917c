// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// world is a machine in a bubble: targets that answer as they are told, a source that sees what
// it is told, and a restart that is written down. Manager and Restarter are real.
type world struct {
	t     *testing.T
	begin time.Time
	m     *prober.Manager
	r     *Restarter
	log   testutil.Log
	view  view

	mu      sync.Mutex
	answers map[string]string // by target, or by target/probe: good, bad or unknown
	acts    []acted
	told    []Act
	// check is what the handler finds before it begins; nil: all is well.
	check func() error
	// work is what a restart does; nil: nothing, at once.
	work func(ctx context.Context, q *request) error
}

// acted is a restart that was made.
type acted struct {
	at       time.Duration // since the world began
	target   string
	instance string
}

var errOfAgent = errors.New("the agent could not")

func newWorld(t *testing.T) *world {
	w := &world{t: t, begin: time.Now(), answers: map[string]string{}}
	w.view.seen, w.view.blind, w.view.details = map[string]gate.Instance{}, map[string]bool{}, map[string]instance.Details{}
	w.start()
	t.Cleanup(w.stop)
	return w
}

// start starts an agent.
func (w *world) start() {
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	w.m = prober.New(prober.Options{
		Logger:    logger,
		NewAction: w.newAction,
		NewSource: func(c *config.Instance, _ *slog.Logger) instance.Watcher {
			if c.Source == config.SourceStatic {
				return nil
			}
			return &w.view
		},
	})
	w.r = New(Options{Prober: w.m, Logger: logger, Told: func(_ string, a Act) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, a)
	}})
	w.r.handlers = map[string]handler{"exec": {does: func(*request) string { return "write it down" }, act: w.act}}
}

// stop ends the agent in the order of the real one.
func (w *world) stop() {
	w.r.Close()
	w.m.Close()
}

func (w *world) newAction(t *config.Target, p *config.Probe) action.Func {
	return func(context.Context) (action.Outcome, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		answer, ok := w.answers[t.Name+"/"+p.Name]
		if !ok {
			answer = w.answers[t.Name]
		}
		switch answer {
		case "bad":
			return action.Outcome{Reason: action.HTTPStatus, Output: "status 500, token s3cret"}, nil
		case "unknown":
			return action.Outcome{Reason: action.AgentLate}, errOfAgent
		}
		return action.Outcome{Success: true}, nil
	}
}

func (w *world) act(ctx context.Context, q *request) (string, error) {
	w.mu.Lock()
	look := w.check
	w.mu.Unlock()
	if look != nil {
		if err := look(); err != nil {
			return "", err
		}
	}
	if err := q.begin(); err != nil {
		return "", err
	}
	w.mu.Lock()
	w.acts = append(w.acts, acted{time.Since(w.begin), q.target.Name, q.instance})
	work := w.work
	w.mu.Unlock()
	if work != nil {
		return "", work(ctx, q)
	}
	return "written down", nil
}

// does sets what a restart does.
func (w *world) does(work func(ctx context.Context, q *request) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work = work
}

// finds sets what the handler finds before it begins.
func (w *world) finds(check func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check = check
}

// says sets how the probes of a target are answered from now on.
func (w *world) says(target, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[target] = answer
}

// made returns the restarts so far.
func (w *world) made() []acted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]acted(nil), w.acts...)
}

// apply makes these targets the configuration, as the loader does.
func (w *world) apply(targets ...config.Target) {
	w.t.Helper()
	cfg := &config.Config{Targets: targets}
	w.r.Suspend()
	if err := w.m.Apply(cfg); err != nil {
		w.t.Fatal(err)
	}
	w.r.Apply(cfg)
	synctest.Wait()
}

// sleep lets time pass, and waits until all is done that is due then.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// status returns what the Restarter says of a target.
func (w *world) status(name string) TargetStatus {
	w.t.Helper()
	s, ok := w.r.Target(name)
	if !ok {
		w.t.Fatalf("no restart block of %s", name)
	}
	return s
}

// want checks how many restarts there were.
func (w *world) want(n int, when string) {
	w.t.Helper()
	if got := w.made(); len(got) != n {
		w.t.Fatalf("%s: %d restarts, want %d: %+v\n%s", when, len(got), n, got, w.log.String())
	}
}

// app returns a target with a liveness probe that fails after 2 s, and a restart block.
func app(name string, more ...func(*config.Target)) config.Target {
	t := config.Target{
		Name:     name,
		Host:     "127.0.0.1",
		Env:      []config.EnvVar{{Name: "TOKEN", Value: "s3cret"}},
		Instance: config.Instance{Source: config.SourceProcess, Match: name},
		LivenessProbe: &config.Probe{
			Exec: &config.Exec{Command: []string{"true"}}, Timeout: time.Second, Period: time.Second,
			SuccessThreshold: 1, FailureThreshold: 2,
		},
		Restart: &config.Restart{Exec: &config.Exec{Command: []string{"true"}}, GracePeriod: 30 * time.Second, BackOff: kubelets},
	}
	for _, m := range more {
		m(&t)
	}
	return t
}

// view is a source that a test plays.
type view struct {
	instance.Defaults

	mu      sync.Mutex
	seen    map[string]gate.Instance
	details map[string]instance.Details
	blind   map[string]bool
	look    func() // what a look finds out
	changed func(string)
}

func (v *view) Watch(*config.Target) {}
func (v *view) Forget(string)        {}
func (v *view) CanLook() bool        { return true }

func (v *view) Instance(name string) gate.Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[name]
}

func (v *view) Describe(name string) instance.Details {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.details[name]
}

func (v *view) Sees(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.blind[name]
}

func (v *view) Look(context.Context) {
	v.mu.Lock()
	look := v.look
	v.mu.Unlock()
	if look != nil {
		look()
	}
}

// looks sets what a look finds out.
func (v *view) looks(look func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look = look
}

func (v *view) Run(ctx context.Context, changed func(string)) error {
	v.mu.Lock()
	v.changed = changed
	v.mu.Unlock()
	<-ctx.Done()
	return nil
}

// sets changes what the source sees of a target; tell says whether the source tells of the change
// by itself.
func (v *view) sets(name string, tell bool, change func(*gate.Instance, *instance.Details)) {
	v.mu.Lock()
	inst, details := v.seen[name], v.details[name]
	change(&inst, &details)
	v.seen[name], v.details[name] = inst, details
	changed := v.changed
	v.mu.Unlock()
	if tell && changed != nil {
		changed(name)
	}
}

// runs makes the source see a new instance of a target.
func (v *view) runs(name, id string) {
	v.sets(name, true, func(i *gate.Instance, d *instance.Details) {
		*i, *d = gate.Instance{ID: id, Phase: gate.Running, StartedAt: time.Now()}, instance.Details{}
	})
}

// mayBegin lets a handler begin.
func mayBegin() error { return nil }

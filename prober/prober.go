// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package prober decides when to probe. A Manager runs one worker a probe, each
// with a timer of its own, and answers what is known of the targets. What a turn
// does is decided by package gate, what an attempt does by package action.
package prober

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
)

// ErrStopping is what Apply returns once the manager has been told to stop.
var ErrStopping = errors.New("the agent is stopping")

// Options are what a Manager needs to know. The zero value works.
type Options struct {
	// Logger is told of changes, not of attempts; nil discards.
	Logger *slog.Logger
	// MaxInFlight bounds how many attempts run at a time, beside the limit of open files;
	// 0 is HighestInFlight, which is the most.
	MaxInFlight int
}

// Manager runs the probes of a configuration. It owns every goroutine and timer
// that it starts, and has waited for them when Close returns.
type Manager struct {
	log       *slog.Logger
	newAction func(*config.Target, *config.Probe) action.Func
	sources   sources
	slots     *slots
	epoch     time.Time // where the shared slots of time begin

	ctx    context.Context // done when attempts shall end
	cancel context.CancelFunc

	inFlight atomic.Int64
	panics   atomic.Uint64
	tally    tally

	subscriptions subscriptions

	latenessMu sync.Mutex
	lateness   sparse

	// applying is held while the set of workers changes, which no attempt delays; it is
	// taken before mu.
	applying sync.Mutex
	stopping bool // guarded by applying

	// swapping is held while targets are replaced; it is taken after applying and before mu.
	swapping    sync.Mutex
	terminating bool // guarded by swapping
	leaving     leaving

	mu      sync.Mutex         // taken before a target's
	targets []*target          // in the order of the configuration; replaced whole
	byName  map[string]*target // replaced whole
	removed []string           // names that reloads have removed, the last at the end
}

// New returns a manager that has no configuration yet.
func New(opts Options) *Manager {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{
		log:       opts.Logger,
		newAction: newAction,
		slots:     newSlots(most(OpenFiles(), opts.MaxInFlight)),
		epoch:     time.Now(),
	}
	m.sources = sources{log: m.log, make: newWatcher, changed: m.sourceChanged, running: map[sourceKey]*watching{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Stop begins the end: liveness and startup workers end, and their results stay as
// they are; readiness goes on being probed, as in a pod that terminates (kubelet
// rules 2.2 and 2.1.6). Apply is refused from now on.
func (m *Manager) Stop() {
	if m.tally.stopping() { // at once, whatever a reload that is under way waits for
		m.subscriptions.tellAll()
	}
	m.applying.Lock()
	m.stopping = true
	m.applying.Unlock()
	stopAll(m.list(), gate.Startup, gate.Liveness)
}

// Terminate says that what runs the targets is ending them, as a pod does that was
// deleted: liveness and startup workers end as at Stop, also those that later reloads
// bring, and readiness and reloads go on. Every live is to be 200 from now on. It waits
// for no attempt and no reload, and cannot be taken back.
func (m *Manager) Terminate() {
	if !m.tally.terminating() {
		return
	}
	m.swapping.Lock()
	m.terminating = true
	for _, t := range m.list() {
		for _, w := range t.workers {
			if w.kind != gate.Readiness {
				w.stop() // whoever ends the worker waits for it: a reload, or Stop
			}
		}
	}
	m.swapping.Unlock()
	m.subscriptions.tellAll()
	m.log.Info("pod terminating: startup and liveness probes have ended, every /live answers 200, readiness probes go on")
}

// Close ends all workers, cancels the attempts that are running without counting
// them, and waits for all of it.
func (m *Manager) Close() {
	m.Stop()
	m.cancel()
	stopAll(m.list(), gate.Readiness)
	for _, is := range m.leaving.all() {
		is.turns.Wait()
	}
	m.sources.close()
}

// list returns the targets; the slice is never written to again.
func (m *Manager) list() []*target {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.targets
}

func (m *Manager) find(name string) *target {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byName[name]
}

// Asked takes note that a kubelet asks about a target, by its probe of that kind: a kubelet
// does that only while the container runs. A source that cannot see a life that does not
// listen takes the question for a sign of one. A name that is no target's is ignored.
func (m *Manager) Asked(name string, k gate.Kind) {
	t := m.find(name)
	if t == nil {
		return
	}
	since := time.Now()
	if p := t.cfg.Probe(k); p != nil && k == gate.Liveness {
		since = since.Add(-p.InitialDelay) // the kubelet's own probe has kept its delay
	}
	t.source.Asked(name, since)
}

// Probe makes each probe of a target take a turn now (kubelet rules 2.6.3 and
// 2.6.4). It reports whether there is such a target.
func (m *Manager) Probe(name string) bool {
	m.swapping.Lock()
	defer m.swapping.Unlock()
	t := m.find(name)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.poke(gate.Startup, gate.Readiness, gate.Liveness)
	return true
}

// NewInstance declares that a target has been restarted just now. It reports
// whether there is such a target.
func (m *Manager) NewInstance(name string) bool {
	t, entries := m.declare(name)
	logAll(entries)
	return t != nil
}

func (m *Manager) declare(name string) (t *target, entries []entry) {
	// No reload may replace the target now: the declaration would be lost with the old one.
	m.swapping.Lock()
	defer m.swapping.Unlock()
	if t = m.find(name); t != nil {
		entries = t.declare(time.Now())
	}
	return t, entries
}

// sourceChanged takes note of what the source of a target has just seen.
func (m *Manager) sourceChanged(name string) {
	if t := m.find(name); t != nil {
		logAll(t.refresh(time.Now()))
	}
}

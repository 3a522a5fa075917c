// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package prober decides when to probe. A Manager runs one worker for each probe, with a
// timer of its own, and reports the state of the targets. Package gate decides what a turn
// does, package action what an attempt does.
package prober

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/heartbeat"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// ErrStopping is the error of Apply after Stop.
var ErrStopping = errors.New("the agent is stopping")

// Options configures a Manager. The zero value works.
type Options struct {
	// Logger gets a line for each change, not for each attempt; nil discards them.
	Logger *slog.Logger
	// MaxInFlight bounds how many attempts run at a time, in addition to the limit of open
	// files; 0 means HighestInFlight, which is also the maximum.
	MaxInFlight int
	// Pod is the view of the agent's own pod, for the source kubernetes; nil makes one.
	Pod *kubernetes.Follower

	// NewAction and NewSource, if not nil, replace the actions and sources of the configuration,
	// for tests in which time stands still. NewSource returns nil for a static target.
	NewAction func(*config.Target, *config.Probe) action.Func
	NewSource func(*config.Instance, *slog.Logger) instance.Watcher
}

// Manager runs the probes of a configuration. It owns every goroutine and timer that it
// starts; Close waits for all of them.
type Manager struct {
	log       *slog.Logger
	pod       *kubernetes.Follower
	newAction func(*config.Target, *config.Probe) action.Func
	sources   sources
	slots     *slots
	looks     heartbeat.Looks
	epoch     time.Time // where the shared slots of time begin

	ctx    context.Context // done when attempts must end
	cancel context.CancelFunc

	inFlight atomic.Int64
	panics   atomic.Uint64
	tally    tally

	subscriptions subscriptions

	latenessMu sync.Mutex
	lateness   sparse

	// applying is held while the set of workers changes; no attempt delays that. It is
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
	removed []string           // names that reloads have removed, the latest last
}

// New returns a manager that has no configuration yet.
func New(opts Options) *Manager {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Pod == nil {
		opts.Pod = kubernetes.NewFollower(kubernetes.InPod(), kubernetes.DefaultPace(), opts.Logger)
	}
	m := &Manager{
		log:       opts.Logger,
		pod:       opts.Pod,
		newAction: newAction,
		slots:     newSlots(most(OpenFiles(), opts.MaxInFlight)),
		epoch:     time.Now(),
	}
	if opts.NewAction != nil {
		m.newAction = opts.NewAction
	}
	if opts.NewSource == nil {
		opts.NewSource = m.newWatcher
	}
	m.sources = sources{log: m.log, make: opts.NewSource, changed: m.sourceChanged, running: map[sourceKey]*watching{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Stop ends the liveness and startup workers; their results stay as they are. Readiness
// probes go on, as in a pod that terminates (kubelet rules 2.2 and 2.1.6). From now on Apply
// returns ErrStopping.
func (m *Manager) Stop() {
	if m.tally.stopping() { // at once, even while a reload is under way
		m.subscriptions.tellAll()
	}
	m.applying.Lock()
	m.stopping = true
	m.applying.Unlock()
	stopAll(m.list(), gate.Startup, gate.Liveness)
}

// Terminate says that the targets' pod is terminating: liveness and startup workers end as
// at Stop, and so do those of later reloads; readiness probes and reloads go on. From now on
// every /live answers 200. Terminate waits for no attempt and no reload, and cannot be
// undone.
func (m *Manager) Terminate() {
	if !m.tally.terminating() {
		return
	}
	m.swapping.Lock()
	m.terminating = true
	for _, t := range m.list() {
		for _, w := range t.workers {
			if w.kind != gate.Readiness {
				w.stop() // a reload, Stop or Close waits for the worker
			}
		}
	}
	m.swapping.Unlock()
	m.subscriptions.tellAll()
	m.log.Info("pod terminating: startup and liveness probes have ended, every /live answers 200, readiness probes go on")
}

// Close ends all workers, cancels the running attempts without counting them, and waits for
// all goroutines.
func (m *Manager) Close() {
	m.Stop()
	m.cancel()
	stopAll(m.list(), gate.Readiness)
	for _, is := range m.leaving.all() {
		is.turns.Wait()
	}
	m.looks.Wait(leaveTime)
	m.sources.close()
}

// list returns the targets; nobody writes to the slice again.
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

// Asked records that the kubelet asks about a target with its probe of that kind; the kubelet
// asks only while the container runs. A source that cannot see an instance before it listens
// takes the question for a sign of a running one. Asked ignores a name that no target has.
func (m *Manager) Asked(name string, k gate.Kind) {
	t := m.find(name)
	if t == nil {
		return
	}
	since := time.Now()
	if probes := t.cfg.Of(k); len(probes) > 0 && k == gate.Liveness {
		least := slices.MinFunc(probes, func(a, b *config.Probe) int { return cmp.Compare(a.InitialDelay, b.InitialDelay) })
		since = since.Add(-least.InitialDelay) // the kubelet's probe has waited for its own delay already
	}
	t.source.Asked(name, since)
}

// Probe makes each probe of a target take a turn now (kubelet rules 2.6.3 and 2.6.4). It
// reports whether the target exists.
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

// NewInstance declares that a target has just been restarted. It reports whether the target
// exists.
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

// sourceChanged records what the source of a target has just seen.
func (m *Manager) sourceChanged(name string) {
	if t := m.find(name); t != nil {
		logAll(t.refresh(time.Now()))
	}
}

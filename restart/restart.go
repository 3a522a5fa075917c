// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package restart restarts the targets that are not live, in the way that the file says: by a
// signal, by the Docker Engine, by systemd or by a command. Nothing here judges a target. The
// verdict is a published Failure of a startup or liveness probe (prober.TargetStatus), and an
// act is what a Restarter does about that verdict, at most one at a time for each target and
// never sooner than the back-off allows.
package restart

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/output"
)

// Options configures a Restarter.
type Options struct {
	Prober *prober.Manager
	// Logger gets a line for each act; nil discards them.
	Logger *slog.Logger
	// Told is called when an act begins, with an Act whose Result is empty, and when the act has
	// ended. It must return at once. It may be nil.
	Told func(target string, a Act)
}

// Restarter acts for the targets that have a restart block. While no target has one, it has no
// goroutine and no subscription. Close waits for every goroutine that it has started, except for one
// that waits for a command left to itself.
type Restarter struct {
	o        Options
	handlers map[string]handler
	begun    time.Time // where moments begin
	wake     chan struct{}

	ctx    context.Context // done when acts must end
	cancel context.CancelFunc
	work   sync.WaitGroup // the loop and the acts

	mu      sync.Mutex // the innermost lock, never held over a call of somebody else's
	targets []*target  // in the order of the configuration
	// byName has these targets and former ones whose pace is not forgotten: a block that is
	// taken out of the file and put back in finds its back-off.
	byName map[string]*target
	pod    []string // the targets that see whether the agent's own pod is being deleted
	// suspended says that a reload is under way: what the file says of acts may be over.
	suspended bool
	endRun    context.CancelFunc // ends the loop; nil if there is none
}

// target is what the Restarter knows of a target. Restarter.mu guards it.
type target struct {
	cfg    *config.Target
	scrub  *output.Scrubber
	former bool // the file has no such block any more

	pace  pace
	busy  bool    // a goroutine acts, or finds out whether it may
	due   moment  // when the loop considers the target again; 0: not before a change
	retry moment  // not before, after an act was dropped
	last  dropped // what was dropped last
	ours  ours

	wanted  bool
	current *Act
	acts    []Act
	counts  Counts
}

// New returns a Restarter without targets.
func New(o Options) *Restarter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Restarter{o: o, handlers: handlers, begun: time.Now(), wake: make(chan struct{}, 1), byName: map[string]*target{}}
	ctx, cancel := context.WithCancelCause(context.Background())
	r.ctx, r.cancel = ctx, func() { cancel(errStopping) }
	return r
}

// now returns the present moment.
func (r *Restarter) now() moment { return time.Since(r.begun) }

// Suspend makes no act begin until Apply or Resume. It comes before a change of the Manager's
// configuration, which takes time: no act may go by the former one any more. An act that is under
// way goes on.
func (r *Restarter) Suspend() { r.suspend(true) }

// Resume ends what Suspend began, if the configuration stays as it was.
func (r *Restarter) Resume() {
	r.suspend(false)
	r.wakeUp()
}

func (r *Restarter) suspend(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspended = yes
}

// Apply makes cfg the configuration. The caller has called Suspend, and applied cfg to the Manager
// after that. An act that is under way goes on as it began. A target keeps its back-off, its limit and its last acts,
// whatever changes; new numbers count from the acts that there were. Counters begin anew if the
// labels change.
func (r *Restarter) Apply(cfg *config.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var targets []*target
	var pod []string
	kept := map[string]*target{}
	for i := range cfg.Targets {
		c := &cfg.Targets[i]
		if c.Instance.Source == config.SourceKubernetes {
			pod = append(pod, c.Name)
		}
		if c.Restart == nil {
			continue
		}
		t := r.byName[c.Name]
		if t == nil {
			t = new(target)
		}
		t.configure(c)
		targets, kept[c.Name] = append(targets, t), t
	}
	now := r.now()
	for name, t := range r.byName {
		if kept[name] == nil && (t.busy || !t.pace.spent(t.cfg.Restart, now)) {
			t.due, t.wanted, t.former = 0, false, true
			kept[name] = t
		}
	}
	r.targets, r.byName, r.pod, r.suspended = targets, kept, pod, false
	switch {
	case len(targets) == 0 && r.endRun != nil:
		r.endRun()
		r.endRun = nil
	case len(targets) > 0 && r.endRun == nil && r.ctx.Err() == nil:
		var ctx context.Context
		ctx, r.endRun = context.WithCancel(r.ctx)
		r.work.Go(func() { r.run(ctx) })
	}
	r.wakeUp()
}

// configure gives the target its configuration.
func (t *target) configure(c *config.Target) {
	t.former = false
	switch {
	case t.cfg == nil:
	case reflect.DeepEqual(t.cfg, c):
		return
	case !slices.Equal(t.cfg.Labels, c.Labels):
		t.counts = Counts{}
	}
	alone := *c // a target must not keep a whole former file in memory
	t.cfg = &alone
	t.scrub = prober.NewScrubber(c)
}

// wakeUp makes the loop consider all targets.
func (r *Restarter) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stop ends acting: from now on no act begins, and one that is under way is cut short in the
// way that its handler says. Stop waits for nothing.
func (r *Restarter) Stop() { r.cancel() }

// Close stops, and waits until every act has ended: at most for lingerTime, unless systemd or a
// file system hangs.
func (r *Restarter) Close() {
	r.Stop()
	r.work.Wait()
}

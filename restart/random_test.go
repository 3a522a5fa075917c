// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// witness knows what happened to a target, independently of Manager and Restarter, and judges
// every act.
type witness struct {
	*world
	random *rand.Rand
	ofActs *rand.Rand // guarded by mu
	target config.Target

	lives   int
	started time.Time // the agent
	quiet   bool      // the agent stops, or the pod terminates

	// What the witness reckons of the back-off, from the acts that it has seen.
	inRow     int
	begun     []time.Time
	lastEnd   time.Time
	lastAgent time.Time // the start of the agent that made the last act
	acting    bool

	total int
}

// is returns why nobody may restart the instance with that ID; nil if the agent may.
func (w *witness) is(s *prober.TargetStatus, id string) error {
	w.view.mu.Lock()
	inst, details, blind := w.view.seen["app"], w.view.details["app"], w.view.blind["app"]
	w.view.mu.Unlock()
	switch {
	case inst.ID != id && !strings.HasPrefix(id, inst.ID+"/"): // a declared restart has a mark
		return fmt.Errorf("the instance is %q", inst.ID)
	case inst.Phase != gate.Running || inst.Deleting || details.Paused || !details.Stopping.IsZero() || blind:
		return fmt.Errorf("the source sees %+v, %+v, blind: %t", inst, details, blind)
	case s.Instance.ID != id:
		return fmt.Errorf("the agent's instance is %q", s.Instance.ID)
	}
	for _, k := range []gate.Kind{gate.Startup, gate.Liveness} {
		if p, ok := s.Probe(k); ok && p.Result == gate.Failure && p.ConsecutiveFailures >= uint64(p.FailureThreshold) {
			return nil
		}
	}
	return fmt.Errorf("no probe says Failure: %+v", s.Probes)
}

// judge checks an act at its beginning.
func (w *witness) judge(q *request) {
	now := time.Now()
	s, _ := w.m.Target("app", prober.Full)
	if err := w.is(&s, q.instance); err != nil {
		w.t.Errorf("%v: a restart of %s although %v", now.Sub(w.begin), q.instance, err)
	}
	b := w.target.Restart.BackOff
	earliest := w.started.Add(b.Initial)
	if w.inRow > 0 && w.lastAgent.Equal(w.started) {
		wait := b.Initial
		for range w.inRow - 1 {
			wait = min(2*wait, b.Max)
		}
		earliest = w.lastEnd.Add(wait)
		if now.Sub(w.lastEnd) >= b.Reset {
			w.inRow = 0
		}
		if l := w.target.Restart.Limit; l.Restarts > 0 && len(w.begun) >= l.Restarts {
			if first := w.begun[len(w.begun)-l.Restarts]; now.Before(first.Add(l.Window)) {
				w.t.Errorf("%v: restart %d within %v", now.Sub(w.begin), l.Restarts+1, now.Sub(first))
			}
		}
	} else {
		w.inRow, w.begun = 0, nil
	}
	switch {
	case now.Before(earliest):
		w.t.Errorf("%v: a restart %v before the back-off is over", now.Sub(w.begin), earliest.Sub(now))
	case w.acting:
		w.t.Errorf("%v: two restarts at a time", now.Sub(w.begin))
	case w.quiet:
		w.t.Errorf("%v: a restart although the agent or the pod is about to end", now.Sub(w.begin))
	}
	w.total++
	w.inRow, w.lastAgent = w.inRow+1, w.started
	w.begun = append(w.begun, now)
}

// restart is the handler: it takes a while, may fail, and may bring the next instance.
func (w *witness) restart(ctx context.Context, q *request) error {
	w.mu.Lock()
	w.judge(q)
	w.acting = true
	takes, result := time.Duration(w.ofActs.IntN(20_000))*time.Millisecond, w.ofActs.IntN(4)
	w.mu.Unlock()
	timer := time.NewTimer(takes)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acting, w.lastEnd = false, time.Now()
	if result == 0 {
		return errOfAgent
	}
	if result > 1 {
		w.lives++
		id := fmt.Sprint("life-", w.lives)
		w.mu.Unlock()
		w.view.runs("app", id)
		w.mu.Lock()
	}
	return nil
}

// event changes something.
func (w *witness) event() {
	see := func(change func(i *gate.Instance, d *instance.Details)) {
		w.view.sets("app", w.random.IntN(4) > 0, change) // the news of a source may be late
	}
	switch w.random.IntN(24) {
	case 0, 1, 2, 3, 4, 5, 6:
		w.says("app", "bad")
	case 7, 8:
		w.says("app", "good")
	case 9:
		w.says("app", "unknown")
	case 10, 11:
		w.mu.Lock()
		w.lives++
		id := fmt.Sprint("life-", w.lives)
		w.mu.Unlock()
		see(func(i *gate.Instance, d *instance.Details) {
			*i, *d = gate.Instance{ID: id, Phase: gate.Running, StartedAt: time.Now()}, instance.Details{}
		})
	case 12:
		see(func(i *gate.Instance, _ *instance.Details) { i.Phase = gate.Phase(w.random.IntN(4)) })
	case 13:
		see(func(i *gate.Instance, d *instance.Details) {
			d.Paused = !d.Paused
			i.Phase = map[bool]gate.Phase{true: gate.PhaseUnknown, false: gate.Running}[d.Paused]
		})
	case 14:
		see(func(i *gate.Instance, _ *instance.Details) { i.Deleting = !i.Deleting })
	case 15:
		see(func(_ *gate.Instance, d *instance.Details) {
			if d.Stopping.IsZero() {
				d.Stopping = time.Now().Add(-time.Hour)
			} else {
				d.Stopping = time.Time{}
			}
		})
	case 16:
		w.view.mu.Lock()
		w.view.blind["app"] = !w.view.blind["app"]
		w.view.mu.Unlock()
	case 17, 18:
		w.mutate()
		w.reload()
	case 19:
		w.reload()
	case 20:
		if !w.quiet {
			w.m.NewInstance("app")
		}
	case 21:
		if w.random.IntN(4) == 0 {
			w.setQuiet(true)
			w.m.Terminate()
		}
	case 22:
		w.setQuiet(true)
		w.r.Stop()
		if w.random.IntN(2) == 0 {
			w.sleep(time.Duration(w.random.IntN(10)) * time.Second)
		}
		w.again()
	case 23: // one that is killed has done nothing more at that moment
		w.again()
	}
}

func (w *witness) setQuiet(quiet bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = quiet
}

// again ends the agent and starts another.
func (w *witness) again() {
	w.stop()
	w.mu.Lock()
	w.quiet, w.started = false, time.Now()
	w.mu.Unlock()
	w.start()
	w.reload()
}

// mutate changes the probes, the labels or, in the way of an agent's life, the block.
func (w *witness) mutate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := app("app")
	t.Restart.BackOff = w.target.Restart.BackOff // the witness knows one
	t.Restart.Limit = w.target.Restart.Limit
	t.LivenessProbe.FailureThreshold = 1 + w.random.IntN(3)
	t.LivenessProbe.Period = time.Duration(1+w.random.IntN(3)) * time.Second
	if w.random.IntN(2) == 0 {
		startup := *t.LivenessProbe
		t.StartupProbe = &startup
	}
	if w.random.IntN(4) == 0 {
		t.Labels = []config.Label{{Name: "a", Value: fmt.Sprint(w.random.IntN(3))}}
	}
	w.target = t
}

// reload applies the configuration, at times after one that does not have the block or the target.
func (w *witness) reload() {
	switch without := w.target; w.random.IntN(6) {
	case 0:
		without.Restart = nil
		w.apply(without)
	case 1:
		w.apply()
	}
	w.apply(w.target)
}

// Over random sequences of outcomes, instances, faults of the source, reloads and restarts of the
// agent there is no restart without a published Failure of a startup or liveness probe of that very
// instance, which the source sees at that moment, and no two restarts within the back-off.
func TestRandom(t *testing.T) {
	total := 0
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			w := &witness{
				world: newWorld(t), random: rand.New(rand.NewPCG(seed, 1)), ofActs: rand.New(rand.NewPCG(seed, 2)),
				started: time.Now(), target: app("app"),
			}
			w.target.Restart.BackOff = config.BackOff{Initial: 3 * time.Second, Max: 20 * time.Second, Reset: 60 * time.Second}
			if seed%3 == 0 {
				w.target.Restart.Limit = config.Limit{Restarts: 4, Window: 5 * time.Minute}
			}
			w.does(w.restart)
			w.view.runs("app", "life-0")
			w.apply(w.target)
			for range 100 {
				w.event()
				w.sleep(time.Duration(w.random.IntN(8000)) * time.Millisecond)
			}
			w.r.Close()
			w.mu.Lock()
			defer w.mu.Unlock()
			total += w.total
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, w.log.String())
			}
		})
	}
	if total < 500 {
		t.Errorf("%d restarts in all, want 500 to judge", total)
	}
	t.Logf("%d restarts", total)
}

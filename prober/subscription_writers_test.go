// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Many targets change in the very moment in which a reader asks. Each change reaches the
// reader, with this answer or with another notice.
func TestSubscriptionBesideManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{})
		defer m.Close()
		s := m.Subscribe()
		s.Changes()
		var values, known [4]atomic.Int32
		done := make(chan struct{})
		defer close(done)
		go func() {
			for {
				select {
				case <-s.C:
				case <-done:
					return
				}
				for _, name := range s.Changes().Targets {
					i, _ := strconv.Atoi(name)
					known[i].Store(values[i].Load())
				}
			}
		}()
		for round := range 2000 {
			var writing sync.WaitGroup
			for i := range values {
				writing.Go(func() {
					for range 3 {
						values[i].Add(1)
						m.subscriptions.tell(strconv.Itoa(i))
					}
				})
			}
			writing.Wait()
			synctest.Wait()
			for i := range values {
				if got, want := known[i].Load(), values[i].Load(); got != want {
					t.Fatalf("round %d: the reader knows %d changes of target %d, want %d", round, got, i, want)
				}
			}
		}
	})
}

// said returns everything that readers shall know of a target.
func said(t *TargetStatus) string {
	s := fmt.Sprint(t.Instance.ID, t.Running, t.Started, t.Ready, t.Live, t.Restarts)
	for _, p := range t.Probes {
		s += fmt.Sprint(" ", p.Result, p.Held)
	}
	return s
}

// follower is a reader that reads a target only when the subscription tells of a change.
type follower struct {
	s     *Subscription
	whole bool          // reads all targets at each change
	slow  time.Duration // between the notice and the read

	mu    sync.Mutex
	knows map[string]string
}

func (f *follower) follow(ctx context.Context, m *Manager) {
	for {
		select {
		case <-f.s.C:
		case <-ctx.Done():
			return
		}
		time.Sleep(f.slow) // in a bubble
		changes := Changes{All: true}
		if !f.whole {
			changes = f.s.Changes()
		}
		time.Sleep(f.slow)
		f.read(m, changes)
	}
}

func (f *follower) read(m *Manager, changes Changes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if changes.All {
		f.knows = map[string]string{}
		for _, t := range m.Status(Brief).Statuses {
			f.knows[t.Name] = said(&t)
		}
	}
	for _, name := range changes.Targets {
		delete(f.knows, name)
		if t, ok := m.Target(name, Brief); ok {
			f.knows[name] = said(&t)
		}
	}
}

// However often many targets change, each reader knows the truth once all is quiet, the slow
// readers a little later. The subscription loses no change.
func TestSubscriptionLosesNothing(t *testing.T) {
	for range 3 {
		synctest.Test(t, testSubscriptionLosesNothing)
	}
}

func testSubscriptionLosesNothing(t *testing.T) {
	w := newWorld(t)
	defer w.m.Close()
	v := &view{seen: map[string]gate.Instance{}}
	w.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return v }
	var targets []config.Target
	for i := range 20 {
		c := app(fmt.Sprint("app", i), every(100*ms), every(100*ms), every(100*ms))
		c.LivenessProbe.FailureThreshold = 2
		if c.Instance.Source = "view"; i%2 == 0 {
			c.Instance.Source = config.SourceStatic
		}
		targets = append(targets, c)
		for _, k := range gate.Kinds() {
			w.on(c.Name+"/"+k.String(), func(context.Context) (action.Outcome, error) {
				return []action.Outcome{good, good, bad}[rand.IntN(3)], nil
			})
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	followers := make([]*follower, 6)
	for i := range followers {
		followers[i] = &follower{s: w.m.Subscribe(), whole: i%2 == 1, slow: time.Duration(i/2) * 70 * ms}
		following.Go(func() { followers[i].follow(ctx, w.m) })
	}
	for range 10 {
		w.apply(targets[rand.IntN(5) : 15+rand.IntN(6)]...)
		var writing sync.WaitGroup
		for range 8 {
			writing.Go(func() {
				for range 20 {
					name := targets[rand.IntN(len(targets))].Name
					switch rand.IntN(4) {
					case 0:
						w.m.NewInstance(name)
					case 1:
						w.m.Probe(name)
					default:
						v.mu.Lock()
						v.seen[name] = gate.Instance{ID: fmt.Sprint(rand.IntN(3)), Phase: gate.Phase(rand.IntN(4)), MaxHold: 200 * ms}
						changed := v.changed
						v.mu.Unlock()
						if changed != nil {
							changed(name)
						}
					}
					time.Sleep(time.Duration(rand.IntN(4)) * 10 * ms)
				}
			})
		}
		writing.Wait()
		synctest.Wait()
		w.allKnow(followers[:2]) // the fast readers know already
	}
	w.m.Close()
	time.Sleep(time.Second)
	synctest.Wait()
	w.allKnow(followers)
	stop()
	following.Wait()
}

func (w *world) allKnow(followers []*follower) {
	w.t.Helper()
	truth := map[string]string{}
	for _, t := range w.m.Status(Brief).Statuses {
		truth[t.Name] = said(&t)
	}
	for i, f := range followers {
		f.mu.Lock()
		if !maps.Equal(f.knows, truth) {
			w.t.Errorf("%v: reader %d knows\n%v, the truth is\n%v", time.Since(w.begin), i, f.knows, truth)
		}
		f.mu.Unlock()
	}
}

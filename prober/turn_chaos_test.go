// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// chaos does at random what can happen to an app while its turns are due, under way or just
// over. Several things happen at a time.
type chaos struct {
	*world
	v       *view
	periods []time.Duration
	loads   chan struct{} // only one load at a time; a mutex would stop the bubble's time
}

// answer ends at once, in time, or after several periods. Some answers ignore ctx.
func (c *chaos) answer(ctx context.Context) (action.Outcome, error) {
	lasts := []time.Duration{0, 0, ms, 90 * ms, 100 * ms, 250 * ms, 700 * ms}[rand.IntN(7)]
	if rand.IntN(4) == 0 {
		ctx = context.Background()
	}
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
		return action.Outcome{}, ctx.Err()
	}
	return []action.Outcome{good, good, bad}[rand.IntN(3)], nil
}

func (c *chaos) reload() {
	c.loads <- struct{}{}
	defer func() { <-c.loads }()
	period := func() time.Duration { return c.periods[rand.IntN(len(c.periods))] }
	t := labelled(app("app", every(period()), every(period()), every(period())), fmt.Sprint(rand.IntN(2)))
	t.Instance.Source = "view"
	_ = c.m.Apply(&config.Config{Targets: []config.Target{t}}) // after Close, Apply refuses the configuration
}

func (c *chaos) happens() {
	id := fmt.Sprint(rand.IntN(3))
	i := gate.Instance{ID: id, Phase: gate.Running, StartedAt: c.begin, MaxHold: time.Second}
	switch rand.IntN(9) {
	case 0:
		c.reload()
	case 1, 2:
		c.m.Probe("app")
	case 3:
		c.m.NewInstance("app")
	case 4:
		i.Phase, i.Final = gate.Terminated, rand.IntN(2) == 0
		c.v.sees(i)
	case 5:
		i.Deleting = true
		c.v.sees(i)
	case 6:
		c.v.sees(gate.Instance{})
	default:
		c.v.sees(i)
	}
}

// For 5 s anything may happen at any moment, several things at the same moment. No probe
// overlaps itself, and in the peace after that each probe has its turns on its grid. A stop at
// any moment ends everything.
func TestTurnsAmongAnything(t *testing.T) {
	for range 30 {
		synctest.Test(t, testTurnsAmongAnything)
	}
}

func testTurnsAmongAnything(t *testing.T) {
	c := &chaos{
		world:   newWorld(t),
		v:       &view{seen: map[string]gate.Instance{}},
		loads:   make(chan struct{}, 1),
		periods: []time.Duration{10 * ms, 100 * ms, 300 * ms, time.Second},
	}
	c.m.log = slog.New(slog.DiscardHandler)
	c.m.slots = newSlots(load{attempts: 1 + rand.IntN(3), files: HighestInFlight})
	c.m.sources.make = func(*config.Instance, *slog.Logger) instance.Watcher { return c.v }
	kinds := []string{"app/startup", "app/readiness", "app/liveness"}
	for _, k := range kinds {
		c.on(k, c.answer)
	}
	c.reload()
	synctest.Wait()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for time.Since(c.begin) < 5*time.Second {
				c.happens()
				time.Sleep(time.Duration(rand.IntN(6)) * 10 * ms)
			}
		})
	}
	all.Go(func() {
		for time.Since(c.begin) < 5*time.Second {
			c.m.Status(Full)
			c.m.Overdue()
			time.Sleep(10 * ms)
		}
	})
	all.Wait()

	for _, k := range kinds {
		c.says(k, good)
	}
	c.v.sees(gate.Instance{ID: "peace", Phase: gate.Running, StartedAt: time.Now(), MaxHold: gate.UntilNewInstance})
	time.Sleep(4 * time.Second)
	synctest.Wait()
	c.is("app", "SRL")
	for _, k := range []gate.Kind{gate.Readiness, gate.Liveness} {
		c.onGrid(k, 8*time.Second)
	}
	before := c.m.Status(Brief)
	if before.InFlight != 0 || len(c.m.Overdue()) != 0 {
		t.Errorf("%d in flight, %q overdue; want none", before.InFlight, c.m.Overdue())
	}
	(&queue{t: t, slots: c.m.slots}).empty()

	for _, k := range kinds {
		c.on(k, c.answer)
	}
	for range 3 {
		all.Go(func() {
			for range 5 {
				c.happens()
				time.Sleep(time.Duration(rand.IntN(3)) * 10 * ms)
			}
		})
	}
	time.Sleep(time.Duration(rand.IntN(30)) * ms)
	c.loads <- struct{}{}
	if rand.IntN(2) == 0 {
		c.m.Stop()
		time.Sleep(time.Duration(rand.IntN(30)) * ms)
	}
	c.m.Close()
	<-c.loads
	made := len(slices.Concat(c.at(kinds[0]), c.at(kinds[1]), c.at(kinds[2])))
	all.Wait()
	time.Sleep(time.Minute)
	if got := len(slices.Concat(c.at(kinds[0]), c.at(kinds[1]), c.at(kinds[2]))); got != made {
		t.Errorf("%d attempts after Close", got-made)
	}
}

// onGrid checks that a probe's attempts from the time from on, and in the period before, lie
// one period apart.
func (c *chaos) onGrid(k gate.Kind, from time.Duration) {
	c.t.Helper()
	period := c.probe("app", k).Period
	at := slices.DeleteFunc(c.at("app/"+k.String()), func(d time.Duration) bool { return d < from-period })
	if len(at) < 2 {
		c.t.Errorf("%v: attempts at %v, want one every %v", k, at, period)
	}
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] != period {
			c.t.Errorf("%v: attempts at %v and %v, want %v between them", k, at[i-1], at[i], period)
		}
	}
}

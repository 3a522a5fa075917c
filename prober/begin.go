// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"time"

	"github.com/prober-exporter/prober_exporter/gate"
)

// begun is a turn that has begun.
type begun struct {
	at      time.Time
	verdict gate.Verdict
	slot    claim  // taken, if it is an attempt
	changes uint64 // of the instance so far
	first   bool   // no attempt has succeeded yet
}

// begin begins a turn, once there is a slot if it is to make an attempt: who only looks
// at the instance waits for nobody. It returns false if the worker was stopped before.
func (w *worker) begin(ctx context.Context, cancel context.CancelFunc) (b begun, ok bool) {
	t, m := w.target, w.target.m
	for held := false; ; {
		t.mu.Lock()
		if w.stopped {
			t.mu.Unlock()
			if held {
				m.slots.release(b.slot)
			}
			return b, false
		}
		w.stage, w.cancel = acting, cancel
		now, inst := time.Now(), t.instance()
		entries := t.meet(inst)
		state, verdict := t.state.Next(w.kind, inst, t.state.Started(inst), now)
		if verdict == gate.Attempt && !held {
			b.slot = w.claim()
			if held = m.slots.tryTake(b.slot); !held {
				wait, stop := context.WithCancel(ctx)
				w.stage, w.cancel = waiting, stop
				t.mu.Unlock()
				logAll(entries)
				held = m.slots.take(wait, b.slot)
				stop()
				if ctx.Err() == nil || held {
					continue // much may have changed, the probe's standing for one
				}
				return b, false
			}
		}
		m.observeLateness(now.Sub(m.timeOf(w.readyAt)))
		if w.poked {
			w.poked, w.due = false, m.moment(m.slotAfter(now, w.probe.Period))
		}
		t.state = state
		switch verdict {
		case gate.Wait:
		case gate.Quit:
			// What it said last can still be read; it does not count any more (rule 5.6).
			last := t.state.Probe(w.kind)
			t.state = t.state.Remove(w.kind).Adopt(w.kind, gate.Instance{ID: last.InstanceID}, last.Result)
			w.quit = true
		case gate.Attempt:
			w.began = m.moment(now)
		}
		t.publish(inst, now)
		w.poked = false // this is the turn that it would ask for
		b.at, b.verdict, b.changes, b.first = now, verdict, t.life.changes, w.successful.count() == 0
		t.mu.Unlock()
		logAll(entries)
		if held && verdict != gate.Attempt {
			m.slots.release(b.slot)
		}
		return b, true
	}
}

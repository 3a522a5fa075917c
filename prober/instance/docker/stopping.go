// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/docker"
)

// This file decides whether somebody is stopping a container.

const (
	// leastStopTime is the least time in which a container that was asked to end counts as being
	// stopped. The daemon does not tell how long somebody who stops a container waits before the
	// kill. A container that outlives that time has ignored the signal.
	leastStopTime = 5 * time.Minute
	// stopSlack is how long after a kill a container may need to end.
	stopSlack = 30 * time.Second
	// endlessStopTime stands for a container whose stop never becomes a kill.
	endlessStopTime = 50 * 365 * 24 * time.Hour
)

// stopEvents are the events that may ask a container to end.
var stopEvents = []string{"kill", "stop"}

// stop is what a source knows of somebody who stops a container.
type stop struct {
	stopping time.Time // when somebody last asked the container to end
	until    time.Time // when the container counts as one that goes on; has a monotonic clock
	heard    bool      // whether the source knows of the events before the first look
	deaf     bool      // whether the daemon was asked for those events in vain
}

// current returns when somebody last asked the container to end; the zero time if nobody has, or
// if the container goes on in spite of that.
func (s *stop) current(now time.Time) time.Time {
	if !now.Before(s.until) {
		return time.Time{}
	}
	return s.stopping
}

// forgetStop says that nobody stops the container, because another life has begun.
func (s *stop) forgetStop() { s.stopping, s.until = time.Time{}, time.Time{} }

// noteStop keeps an event that asks the container in view to end, unless a later one is known.
func (e *watched) noteStop(ev *docker.Event, now time.Time) {
	signal := ev.Actor.Attributes["signal"]
	if !e.ends(signal) {
		return
	}
	asked := now
	if at := time.Unix(0, ev.TimeNano); ev.TimeNano > 0 && at.Before(now) {
		asked = at
	}
	if now.Before(e.until) && !asked.After(e.stopping) {
		return
	}
	lasts := e.stopTime()
	if n, ok := signalNumber(signal); ok && n == kill {
		lasts = stopSlack
	}
	e.stopping, e.until = asked, now.Add(lasts-now.Sub(asked))
}

// stopTime returns how long the container in view counts as being stopped after it was asked to
// end.
func (e *watched) stopTime() time.Duration {
	switch s := e.stopTimeout; {
	case s == nil:
		return leastStopTime
	case *s < 0:
		return endlessStopTime
	default:
		return max(leastStopTime, time.Duration(min(*s, math.MaxInt32))*time.Second+stopSlack)
	}
}

// ends reports whether a signal, as an event names it, asks the container to end: its own stop
// signal does, and those that end any program. People send the others to a container that is to
// go on, for example to make it write its stacks. A daemon may not name the signal. In doubt the
// container is being stopped.
func (e *watched) ends(signal string) bool {
	sent, known := signalNumber(signal)
	own, ownKnown := signalNumber(e.stopSignal)
	return !known || !ownKnown || sent == own || sent == kill || sent == term || sent == interrupt
}

// The numbers of the signals that end any program.
const interrupt, kill, term = 2, 9, 15

// signals are the names of the signals of Linux from 1 on. The daemon may run on another system
// than the agent.
var signals = strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT " +
	"CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS")

// signalNumber returns the number of a signal that an image, a user or an event gives by its
// number or its name, with or without SIG. No name stands for SIGTERM.
func signalNumber(signal string) (n int, ok bool) {
	if signal == "" {
		return term, true
	}
	if n, err := strconv.Atoi(signal); err == nil {
		return n, true
	}
	name := strings.TrimPrefix(strings.ToUpper(signal), "SIG")
	if i := slices.Index(signals, name); i >= 0 {
		return i + 1, true
	}
	return config.RealTimeSignal("SIG" + name)
}

// hear asks the daemon who has asked the container in view to end before the source saw the
// container: the agent was not there, or had no stream of events. Until the daemon has answered,
// the source does not see the target. hear returns an error if the daemon is out of reach.
func (d *Source) hear(ctx context.Context, e *watched) error {
	d.mu.Lock()
	id, since := e.view.id, e.view.instance.StartedAt
	if oldest := time.Now().Add(-e.stopTime()); since.Before(oldest) {
		since = oldest
	}
	needless := e.heard || id == ""
	d.mu.Unlock()
	if needless {
		return nil
	}
	events, err := d.client.PastEvents(ctx, id, stopEvents, since)
	if err != nil {
		return d.missed(ctx, e, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.view.id != id {
		return nil
	}
	for _, ev := range events {
		// The events before the look have told in the view all that they have to tell, but this.
		if ev.Actor.ID == id && slices.Contains(stopEvents, ev.Action) {
			e.noteStop(ev, time.Now())
		}
	}
	e.heard, e.deaf = true, false
	return nil
}

// missed logs once that the daemon does not tell past events, if the daemon is in reach.
func (d *Source) missed(ctx context.Context, e *watched, err error) error {
	if pingErr := d.client.Ping(ctx); pingErr != nil {
		return err
	}
	d.mu.Lock()
	news := !e.deaf
	e.deaf = true
	d.mu.Unlock()
	if news {
		d.log.Warn("the daemon does not say who has stopped the container: no restarts", "target", e.name, "err", err)
	}
	return nil
}

// deafen makes the source ask anew for the events that it may have missed.
func (d *Source) deafen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.targets {
		e.heard = false
	}
}

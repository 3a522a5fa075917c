// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/docker"
)

// Run watches until ctx is done. It returns no error: it reconnects until the daemon is back.
func (d *Source) Run(ctx context.Context, changed func(target string)) error {
	retry, told := d.minRetry, false
	for {
		err := d.session(ctx, changed, func() {
			retry = d.minRetry
			if told {
				d.log.Info("container engine is in reach again", "socket", d.client.Socket())
			}
			told = false
		})
		d.setConnected(false)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the ordinary end
		}
		if !told {
			d.log.Warn("container engine is out of reach: the last view stays",
				"socket", d.client.Socket(), "err", err, "hint", docker.Hint(err))
			told = true
		}
		// Every agent of a machine loses the daemon at the same moment.
		pause(ctx, retry/2+rand.N(retry/2+1))
		retry = min(2*retry, d.maxRetry)
	}
}

// session is one connection. It returns why the connection ended, and calls well once it has
// looked at every target.
func (d *Source) session(ctx context.Context, changed func(target string), well func()) error {
	var reader sync.WaitGroup
	defer reader.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	if err := d.client.Negotiate(ctx); err != nil {
		return err
	}
	// Events come first: a change between a look and the first event would be lost.
	stream, err := d.client.Events(ctx, eventNames)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	reader.Go(func() { ended <- d.readEvents(stream) })

	ticker := time.NewTicker(d.refresh)
	defer ticker.Stop()
	// Targets without a usable answer are looked at again earlier than the others.
	again := time.NewTimer(d.refresh)
	defer again.Stop()
	pending, wait := false, d.minRetry
	d.deafen()
	d.soil(false)
	for first := true; ; first = false {
		if err := d.lookAtDirty(ctx, changed); err != nil {
			return err
		}
		if first {
			d.setConnected(true)
			well()
		}
		switch unusable := d.anyUnusable(); {
		case !unusable:
			wait = d.minRetry
		case !pending:
			again.Reset(wait)
			pending, wait = true, min(2*wait, d.refresh)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case <-d.wake:
		case <-again.C:
			pending = false
			d.soil(true)
		case <-ticker.C:
			if err := d.client.Ping(ctx); err != nil {
				return err
			}
			d.soil(false)
		}
	}
}

// lookAtDirty looks at all dirty targets. It returns an error if the daemon is out of reach.
func (d *Source) lookAtDirty(ctx context.Context, changed func(target string)) error {
	for {
		e := d.nextDirty()
		if e == nil {
			return nil
		}
		found, err := d.find(ctx, e)
		if err != nil {
			// A healthy daemon can hang at one container, or fail to describe it. The other
			// targets must not suffer from that.
			if pingErr := d.client.Ping(ctx); pingErr != nil {
				return err
			}
			found = finding{trouble: answerUnusable, text: err.Error()}
		}
		d.apply(e, found, changed)
		if err := d.hear(ctx, e); err != nil {
			return err
		}
	}
}

// nextDirty returns a dirty target; targets that may cost a timeout come last.
func (d *Source) nextDirty() *watched {
	d.mu.Lock()
	defer d.mu.Unlock()
	var next *watched
	for _, e := range d.targets {
		if e.dirty && (next == nil || next.trouble == answerUnusable) {
			next = e
		}
	}
	if next != nil {
		next.dirty = false
	}
	return next
}

// apply makes found the view of a target, unless the target is no longer watched.
func (d *Source) apply(e *watched, found finding, changed func(target string)) {
	d.mu.Lock()
	if d.targets[e.name] != e {
		d.mu.Unlock()
		return
	}
	before, beforeTrouble := e.view, e.trouble
	e.view, e.trouble = found.view(e), found.trouble
	if e.view.instance.ID != before.instance.ID {
		e.unfinished = nil
	}
	for _, t := range [...]struct {
		trouble trouble
		n       int
	}{{beforeTrouble, -1}, {e.trouble, 1}} {
		if t.trouble == answerUnusable {
			d.unusable += t.n
		}
	}
	after := e.view
	d.mu.Unlock()

	switch found.trouble {
	case beforeTrouble:
	case seenClearly:
		d.log.Info("the view of the container is clear again", "target", e.name)
	default:
		d.log.Warn("the view of the container is unclear", "target", e.name, "trouble", found.text)
	}
	if after != before {
		changed(e.name)
	}
}

func (d *Source) setConnected(connected bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connected = connected
}

func (d *Source) anyUnusable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unusable > 0
}

// soil makes all targets dirty, or only those without a usable answer.
func (d *Source) soil(unusable bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.targets {
		if !unusable || e.trouble == answerUnusable {
			e.dirty = true
		}
	}
}

// wakeSession makes the session look.
func (d *Source) wakeSession() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// pause waits for that long or until ctx is done.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

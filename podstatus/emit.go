// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/kubernetes"
)

const (
	// component is the name of the agent in events.
	component = "prober_exporter"
	// remembered is how many events the agent can raise the count of.
	remembered = 100
	// maxTries is how often the agent tries to write an event.
	maxTries = 5
	// maxName is how long the name of an object may be.
	maxName = 253
)

// emitter writes events, each within the rate, one after the other.
type emitter struct {
	o      Options
	counts *counts
	queue  chan event
	seen   chan struct{} // of capacity 1: the pod has changed

	mu         sync.Mutex
	enabled    bool
	bucket     bucket
	latest     time.Time         // of the events
	containers map[string]string // by target, of those whose source names one

	// Of run:
	written []written // the latest last
	told    kubernetes.Trouble
	lost    bool // an answer about the present event: the server may have the event
}

// written is an event that the API server has.
type written struct {
	key   eventKey
	name  string
	count int
}

// eventKey is what makes two events the same.
type eventKey struct {
	warning                bool
	reason, message, field string
}

// on makes the emitter take events, if the configuration asks for them.
func (e *emitter) on(cfg *config.Config) {
	containers := map[string]string{}
	for i := range cfg.Targets {
		if t := &cfg.Targets[i]; t.Instance.Source == config.SourceKubernetes {
			containers[t.Name] = t.Instance.Container
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enabled, e.containers = cfg.Kubernetes.Events, containers
}

// off makes the emitter refuse events.
func (e *emitter) off() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enabled = false
}

// drain drops the queued events without counting them.
func (e *emitter) drain() {
	for {
		select {
		case <-e.queue:
		default:
			return
		}
	}
}

// acted adds the event of an act.
func (e *emitter) acted(a Act) { e.add(a.event(time.Now())) }

// podChanged tells run that the pod has changed.
func (e *emitter) podChanged() {
	select {
	case e.seen <- struct{}{}:
	default:
	}
}

// add queues an event, or drops it if there are too many. add never waits. No two events have
// one time, because their names are made of their times.
func (e *emitter) add(ev event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.enabled {
		return
	}
	if !ev.at.After(e.latest) {
		ev.at = e.latest.Add(1)
	}
	e.latest = ev.at
	if e.bucket.take(ev.at) {
		select {
		case e.queue <- ev:
			return
		default:
		}
	}
	e.counts.dropped.Add(1)
}

// run writes the queued events until ctx is done.
func (e *emitter) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case ev := <-e.queue:
			e.deliver(ctx, ev)
		}
	}
}

// deliver writes an event. After a few tries deliver drops the event.
func (e *emitter) deliver(ctx context.Context, ev event) {
	e.lost = false
	for tries := 1; ; tries++ {
		err := e.writeOnceKnown(ctx, ev)
		if err == nil {
			e.told = 0
			return
		}
		if ctx.Err() != nil {
			return
		}
		var after time.Duration
		if broken, ok := errors.AsType[*kubernetes.Error](err); ok {
			after = broken.After
			e.lost = e.lost || !broken.Refused
			if e.told&broken.Trouble == 0 {
				e.o.Logger.Warn("cannot write an event of the pod", "err", err)
			}
			e.told |= broken.Trouble
			if broken.Trouble == kubernetes.TroubleForbidden || broken.Trouble == kubernetes.TroubleInvalid {
				tries = maxTries // nothing changes soon
			}
		}
		if tries >= maxTries || errors.Is(err, errGone) {
			e.counts.dropped.Add(1)
			return
		}
		timer := time.NewTimer(backOff(tries, after))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// writeOnceKnown is write, once the pod is known.
func (e *emitter) writeOnceKnown(ctx context.Context, ev event) error {
	for {
		err := e.write(ctx, ev)
		if !errors.Is(err, errUnknown) {
			return err
		}
		select {
		case <-e.seen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var (
	errGone    = errors.New("the pod is gone")
	errUnknown = errors.New("the pod is not known yet")
)

// write makes one request: it raises the count of an event that the API server has, or
// creates the event.
func (e *emitter) write(ctx context.Context, ev event) error {
	p := e.o.Pod.Pod()
	switch {
	case p == nil:
		return errUnknown
	case p.Gone:
		return errGone
	}
	client := e.o.Pod.Client()
	self, err := client.Self()
	if err != nil {
		return e.counted(ctx, err)
	}
	key := eventKey{ev.warning, ev.reason, ev.message, e.field(p, ev.target)}
	if i := slices.IndexFunc(e.written, func(w written) bool { return w.key == key }); i >= 0 {
		again := e.written[i]
		e.written = slices.Delete(e.written, i, i+1)
		again.count++
		err := client.PatchEvent(ctx, self, again.name, map[string]any{"count": again.count, "lastTimestamp": ev.at.UTC().Format(time.RFC3339)})
		broken, ok := errors.AsType[*kubernetes.Error](err)
		switch missing := ok && broken.Trouble == kubernetes.TroubleMissing; {
		case err == nil:
			e.written = append(e.written, again)
			return e.counted(ctx, nil)
		case !missing: // an event that is an hour old is gone
			again.count--
			e.written = append(e.written, again)
			return e.counted(ctx, err)
		}
	}
	name := eventName(self.Name, ev.at)
	err = client.CreateEvent(ctx, self, newEvent(self, p, name, ev, key))
	broken, ok := errors.AsType[*kubernetes.Error](err)
	if there := ok && e.lost && broken.Trouble == kubernetes.TroubleConflict; err != nil && !there {
		return e.counted(ctx, err)
	}
	if e.written = append(e.written, written{key, name, 1}); len(e.written) > remembered {
		e.written = slices.Delete(e.written, 0, 1)
	}
	return e.counted(ctx, nil)
}

// counted counts a request by its error, which it returns. A request that the agent has cut
// short counts for nothing.
func (e *emitter) counted(ctx context.Context, err error) error {
	switch {
	case err == nil:
		e.counts.events.Add(1)
	case ctx.Err() == nil:
		e.counts.failedEvents.Add(1)
	}
	return err
}

// field returns the path of the target's container in the pod; empty if the source of the
// target names none.
func (e *emitter) field(p *kubernetes.Pod, target string) string {
	e.mu.Lock()
	name := e.containers[target]
	e.mu.Unlock()
	is := func(c kubernetes.Container) bool { return c.Name == name }
	switch {
	case name == "":
		return ""
	case slices.ContainsFunc(p.Spec.InitContainers, is):
		return "spec.initContainers{" + name + "}"
	}
	return "spec.containers{" + name + "}"
}

// eventName returns a name for a new event, as a kubelet makes it.
func eventName(pod string, at time.Time) string {
	end := fmt.Sprintf(".%x", at.UnixNano())
	return pod[:min(len(pod), maxName-len(end))] + end
}

// newEvent returns an event of core/v1, which is what a kubelet writes.
func newEvent(self kubernetes.Self, p *kubernetes.Pod, name string, ev event, key eventKey) any {
	type object = map[string]any
	sort, at := "Normal", ev.at.UTC().Format(time.RFC3339)
	if ev.warning {
		sort = "Warning"
	}
	about := object{"apiVersion": "v1", "kind": "Pod", "namespace": self.Namespace, "name": self.Name, "uid": p.Metadata.UID}
	if key.field != "" {
		about["fieldPath"] = key.field
	}
	return object{
		"apiVersion":         "v1",
		"kind":               "Event",
		"metadata":           object{"name": name, "namespace": self.Namespace},
		"involvedObject":     about,
		"type":               sort,
		"reason":             ev.reason,
		"message":            ev.message,
		"source":             object{"component": component, "host": p.Spec.NodeName},
		"firstTimestamp":     at,
		"lastTimestamp":      at,
		"count":              1,
		"reportingComponent": component,
		"reportingInstance":  p.Spec.NodeName,
	}
}

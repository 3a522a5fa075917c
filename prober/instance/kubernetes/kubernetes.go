// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is the source that watches the containers of the agent's own pod.
package kubernetes

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// Source watches containers of the agent's own pod. The pod comes from a Follower, which the
// Source may share with others.
type Source struct {
	instance.Defaults

	log *slog.Logger
	own *kubernetes.Follower

	notes instance.Notes
	noted chan struct{} // tells Run that there are notes

	mu      sync.Mutex
	targets map[string]*watched
}

var _ instance.Watcher = (*Source)(nil)

// watched is a target and what the source knows of it.
type watched struct {
	container string
	instance  gate.Instance
	details   instance.Details
	warned    bool // that its container cannot be watched
}

// New returns a source of the containers of a pod.
func New(own *kubernetes.Follower, log *slog.Logger) *Source {
	return &Source{
		log:     log,
		own:     own,
		noted:   make(chan struct{}, 1),
		targets: make(map[string]*watched),
	}
}

// Watch begins to watch a container for a target. If the source has seen the pod, the
// target's instance is known at once.
func (k *Source) Watch(t *config.Target) {
	k.mu.Lock()
	p := k.pod()
	w := k.targets[t.Name]
	if w == nil || w.container != t.Instance.Container {
		w = &watched{container: t.Instance.Container}
		k.targets[t.Name] = w
	}
	w.see(p)
	warn := w.warn(p)
	k.mu.Unlock()
	if warn != "" {
		k.notes.Add(func() { k.warn(t.Name, warn) })
		select {
		case k.noted <- struct{}{}:
		default:
		}
	}
}

// Forget ends the watch of a target.
func (k *Source) Forget(target string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.targets, target)
}

// Instance returns the life of the container that the API server reported last.
func (k *Source) Instance(target string) gate.Instance {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.targets[target]; w != nil {
		return w.instance
	}
	return gate.Instance{}
}

// Describe returns how the container last ended, and why it waits.
func (k *Source) Describe(target string) instance.Details {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.targets[target]
	if w == nil {
		return instance.Details{}
	}
	d := w.details
	if d.Message == "" {
		d.Message = k.own.Trouble()
	}
	return d
}

// Up reports whether the pod is being watched, or the watch is being renewed in the ordinary
// course of things.
func (k *Source) Up() bool { return k.own.Up() }

// Sees reports whether the pod is watched.
func (k *Source) Sees(string) bool { return k.Up() }

// Run watches the pod until ctx is done.
func (k *Source) Run(ctx context.Context, changed func(target string)) error {
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { k.write(ctx) })
	k.own.Follow(ctx, func() { k.see(changed) })
	return nil
}

// pod returns the pod as last seen; nil before that.
func (k *Source) pod() *pod { return (*pod)(k.own.Pod()) }

// write logs what Watch has found, until ctx is done.
func (k *Source) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.noted:
			k.notes.Write()
		}
	}
}

// see stores what the pod says, and calls changed for each target that has changed.
func (k *Source) see(changed func(target string)) {
	var names []string
	warnings := make(map[string]string)
	k.mu.Lock()
	p := k.pod() // under the lock, so that no older view comes after a newer one
	for name, w := range k.targets {
		if w.see(p) {
			names = append(names, name)
		}
		if text := w.warn(p); text != "" {
			warnings[name] = text
		}
	}
	k.mu.Unlock()
	for name, text := range warnings {
		k.warn(name, text)
	}
	for _, name := range names {
		changed(name)
	}
}

func (k *Source) warn(target, text string) {
	k.log.Warn("cannot watch the target", "target", target, "err", text)
}

// see stores what a pod says of the container, and reports whether anything has changed.
func (w *watched) see(p *pod) bool {
	if p == nil {
		return false
	}
	inst, details := p.instance(w.container), p.details(w.container)
	if p.Gone { // the last end is still true
		details = w.details
	}
	news := inst != w.instance || detailsDiffer(details, w.details)
	w.instance, w.details = inst, details
	return news
}

// warn returns what is wrong with the container's name, but only the first time.
func (w *watched) warn(p *pod) string {
	if p == nil || w.warned {
		return ""
	}
	text := p.misnamed(w.container)
	w.warned = text != ""
	return text
}

func detailsDiffer(a, b instance.Details) bool {
	if (a.ExitCode == nil) != (b.ExitCode == nil) || a.ExitCode != nil && *a.ExitCode != *b.ExitCode {
		return true
	}
	return a.OOMKilled != b.OOMKilled || a.Message != b.Message
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/prober/instance"
	"github.com/prober-exporter/prober_exporter/prober/instance/docker"
	"github.com/prober-exporter/prober_exporter/prober/instance/kubernetes"
	"github.com/prober-exporter/prober_exporter/prober/instance/listener"
	"github.com/prober-exporter/prober_exporter/prober/instance/process"
)

// newWatcher returns the source that c asks for; nil for the static source.
func (m *Manager) newWatcher(c *config.Instance, log *slog.Logger) instance.Watcher {
	switch log = log.With("source", c.Source); c.Source {
	case config.SourceListener:
		return listener.New(log)
	case config.SourceProcess:
		return process.New(log)
	case config.SourceDocker:
		return docker.New(c.Socket, log)
	case config.SourceKubernetes:
		return kubernetes.New(m.pod, log)
	}
	return nil
}

// sourceKey identifies a source: all targets with the same key share one.
type sourceKey struct{ source, socket string }

func keyOf(c *config.Instance) sourceKey { return sourceKey{c.Source, c.Socket} }

// sources holds the watchers in use. A watcher runs while it has a target. The caller makes
// one call at a time; only up may run beside another call.
type sources struct {
	log     *slog.Logger
	make    func(*config.Instance, *slog.Logger) instance.Watcher
	changed func(target string)

	mu      sync.Mutex
	running map[sourceKey]*watching
	runs    sync.WaitGroup // the Runs of all watchers, released ones included
}

// watching is a watcher that runs.
type watching struct {
	instance.Watcher
	targets map[string]bool // guarded by the caller of sources
	cancel  context.CancelFunc
}

// acquire returns the source of a target. The source watches the target from now on.
func (s *sources) acquire(c *config.Target) instance.Source {
	key := keyOf(&c.Instance)
	s.mu.Lock()
	w := s.running[key]
	s.mu.Unlock()
	if w == nil {
		watcher := s.make(&c.Instance, s.log)
		if watcher == nil {
			return instance.Static{StartedAt: time.Now()}
		}
		w = &watching{Watcher: watcher, targets: map[string]bool{}}
		s.start(key, w)
	}
	w.targets[c.Name] = true
	w.Watch(c)
	return w.Watcher
}

func (s *sources) start(key sourceKey, w *watching) {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	s.runs.Go(func() {
		if err := w.Run(ctx, s.changed); err != nil {
			s.log.Error("an instance source has ended: the agent sees no more restarts", "source", key.source, "err", err)
		}
	})
	s.mu.Lock()
	s.running[key] = w
	s.mu.Unlock()
}

// release ends the watch of a target by the source that c asks for. A source without targets
// ends. Only close waits for that end, because the source's reads may hang.
func (s *sources) release(c *config.Target) {
	key := keyOf(&c.Instance)
	s.mu.Lock()
	w := s.running[key]
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.Forget(c.Name)
	if delete(w.targets, c.Name); len(w.targets) > 0 {
		return
	}
	s.mu.Lock()
	delete(s.running, key)
	s.mu.Unlock()
	w.cancel()
}

// close ends all watchers and waits for them.
func (s *sources) close() {
	s.mu.Lock()
	for _, w := range s.running {
		w.cancel()
	}
	s.mu.Unlock()
	s.runs.Wait()
}

// up returns for each source in use, except static ones, whether it can see its targets.
func (s *sources) up() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	up := make(map[string]bool, len(s.running)+1)
	for key, w := range s.running {
		known, others := up[key.source]
		up[key.source] = w.Up() && (known || !others)
	}
	return up
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// life is what is true of a target: an instance, whoever sees it.
type life struct {
	number  int
	phase   gate.Phase
	started time.Time
	from    int // the number of the instance that handed over; 0 if none did
	seen    map[string]bool
}

// scripted is a source that sees the lives as they are, under names of its own.
type scripted struct {
	instance.Defaults
	r       *random
	name    string
	maxHold time.Duration
	changed func(string)
	down    bool
}

func (r *random) newSource(c *config.Instance, _ *slog.Logger) instance.Watcher {
	if c.Source == config.SourceStatic {
		return nil
	}
	s := &scripted{r: r, name: c.Source, maxHold: c.MaxHold, changed: func(string) {}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources[s] = true
	return s
}

func (s *scripted) Instance(target string) gate.Instance {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	l := s.r.lives[target]
	if l == nil || !l.seen[s.name] {
		return gate.Instance{MaxHold: s.maxHold}
	}
	i := gate.Instance{ID: s.id(l.number), Phase: l.phase, StartedAt: l.started, MaxHold: s.maxHold}
	if l.from != 0 {
		i.From = s.id(l.from)
	}
	return i
}

func (s *scripted) id(number int) string { return fmt.Sprintf("%s-%d", s.name, number) }

func (s *scripted) Up() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return !s.down
}

// Watch sees the target at once, as a source that asks the kernel does, or later.
func (s *scripted) Watch(t *config.Target) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	l := s.r.lives[t.Name]
	if l == nil {
		l = &life{number: 1, phase: gate.Running, started: time.Now(), seen: map[string]bool{}}
		s.r.lives[t.Name] = l
	}
	if s.name == config.SourceListener || s.name == config.SourceProcess {
		l.seen[s.name] = true
	}
}

func (s *scripted) Forget(string) {}

func (s *scripted) Run(ctx context.Context, changed func(string)) error {
	s.r.mu.Lock()
	s.changed = changed
	s.r.mu.Unlock()
	<-ctx.Done()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	delete(s.r.sources, s)
	return nil
}

// tell tells every source of a target's news.
func (r *random) tell(target string) {
	r.mu.Lock()
	var changed []func(string)
	for s := range r.sources {
		changed = append(changed, s.changed)
	}
	r.mu.Unlock()
	for _, f := range changed {
		f(target)
	}
}

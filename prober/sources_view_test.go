// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/prober/instance"
)

// view is a source whose view a test decides.
type view struct {
	instance.Defaults

	mu      sync.Mutex
	seen    map[string]gate.Instance
	details instance.Details
	watched string // a word for each Watch (+name) and Forget (-name)
	held    string // a word for each Held: name, or !name when it ends
	missed  string // a word for each AttemptFailed
	asked   string // a word for each Asked
	lost    bool
	down    bool
	blind   bool // at its targets
	runs    int
	look    func() // called when a worker asks for a look
	slow    time.Duration
	changed func(string)
}

func (v *view) Instance(name string) gate.Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[name]
}

func (v *view) note(to *string, word string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*to += word + " "
}

func (v *view) Watch(t *config.Target)           { v.note(&v.watched, "+"+t.Name) }
func (v *view) Forget(name string)               { v.note(&v.watched, "-"+name) }
func (v *view) Held(name string, held bool)      { v.note(&v.held, map[bool]string{false: "!"}[held]+name) }
func (v *view) Describe(string) instance.Details { return v.details }

func (v *view) AttemptFailed(name string) { v.note(&v.missed, name) }

func (v *view) Asked(name string, since time.Time) { v.note(&v.asked, name+time.Until(since).String()) }

func (v *view) InDoubt(string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lost
}

func (v *view) Up() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.down
}

func (v *view) Sees(string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.blind
}

func (v *view) Run(ctx context.Context, changed func(string)) error {
	v.mu.Lock()
	v.runs++
	v.changed = changed
	v.mu.Unlock()
	<-ctx.Done()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runs--
	return nil
}

func (v *view) CanLook() bool { return true }

func (v *view) Look(ctx context.Context) {
	v.mu.Lock()
	look, slow := v.look, v.slow
	v.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
	}
	if look != nil {
		look()
	}
}

// looks sets what happens when somebody asks for a look, and how long that takes.
func (v *view) looks(look func(), slow time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look, v.slow = look, slow
}

// sees makes i the instance of app.
func (v *view) sees(i gate.Instance) {
	v.mu.Lock()
	v.seen["app"] = i
	changed := v.changed
	v.mu.Unlock()
	changed("app")
}

// runs returns an instance that started now.
func runs(id string) gate.Instance {
	return gate.Instance{ID: id, Phase: gate.Running, StartedAt: time.Now()}
}

// watched returns an app whose instances come from the given source, with three probes of one
// second.
func watched(source string) config.Target {
	t := app("app", every(time.Second), every(time.Second), every(time.Second))
	t.Instance = config.Instance{Source: source}
	return t
}

// inView runs f in a bubble, in a world with an app whose source is a view.
func inView(t *testing.T, f func(w *world, v *view)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.m.Close()
		v := &view{seen: map[string]gate.Instance{}}
		w.m.sources.make = func(c *config.Instance, _ *slog.Logger) instance.Watcher {
			if c.Source == "view" {
				return v
			}
			return nil
		}
		w.apply(watched("view"))
		f(w, v)
	})
}

// results returns the first letters of the results of startup, readiness and liveness.
func (w *world) results() string {
	w.t.Helper()
	var s string
	for _, k := range gate.Kinds() {
		s += w.probe("app", k).Result.String()[:1]
	}
	return s
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

// world is a source with its log.
type world struct {
	*Source
	t       *testing.T
	log     *testutil.Log
	changed chan string
}

// newWorld returns a source that retries fast and does not run yet.
func newWorld(t *testing.T, socket string) *world {
	s := &world{t: t, log: new(testutil.Log), changed: make(chan string, 1000)}
	s.Source = New(socket, slog.New(slog.NewTextHandler(s.log, nil)))
	s.minRetry, s.maxRetry = time.Millisecond, 4*time.Millisecond
	return s
}

// run runs the source until the test ends, or until the caller calls stop.
func (s *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func(target string) { s.changed <- target }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the source ended with %v", err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// watch watches a container for a target with the same name.
func (s *world) watch(container string) {
	s.Watch(&config.Target{Name: container, Instance: config.Instance{Container: container}})
}

// await waits for an instance of target.
func (s *world) await(target string, want gate.Instance) {
	s.t.Helper()
	testutil.Eventually(s.t, target+" has the wanted instance", func() error {
		if got := s.Instance(target); got != want {
			return fmt.Errorf("got %+v, want %+v", got, want)
		}
		return nil
	})
}

// until waits until ok reports true.
func (s *world) until(what string, ok func() bool) {
	s.t.Helper()
	testutil.Until(s.t, what, ok)
}

// life returns the instance of container n that started at second.
func life(n, second int, phase gate.Phase) gate.Instance {
	return gate.Instance{
		ID:        dockerd.ID(n)[:12] + "@" + dockerd.StartedAt(second).Format(time.RFC3339Nano),
		Phase:     phase,
		StartedAt: dockerd.StartedAt(second),
	}
}

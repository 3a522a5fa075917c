// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/restart/systemd"
)

// unitRequest asks for a restart of a unit, which must not begin.
func unitRequest(t *testing.T, source, instance string) *request {
	return &request{
		target: &config.Target{
			Instance: config.Instance{Source: source},
			Restart:  &config.Restart{Systemd: &config.RestartSystemd{Unit: "shop.service"}},
		},
		instance: instance, longest: time.Minute,
		begin: func() error {
			t.Error("the restart has begun")
			return nil
		},
	}
}

// calm is a systemd in which nothing speaks against a restart.
func calm(_ context.Context, _ string, _ int, begin func() error) error { return begin() }

// systemd is asked about the process of an instance. The process of a container belongs to a unit
// of the Engine's, and a listener's is not known.
func TestSystemdProcess(t *testing.T) {
	for source, want := range map[string]int{config.SourceProcess: 4711, config.SourceListener: 0} {
		q := unitRequest(t, source, "boot/4711/99")
		began := false
		q.begin = func() error {
			began = true
			return nil
		}
		did, err := restartUnitBy(t.Context(), q, func(_ context.Context, unit string, pid int, begin func() error) error {
			if unit != "shop.service" || pid != want || began {
				t.Errorf("%s: %s with the process %d, has begun: %v; want %d", source, unit, pid, began, want)
			}
			return begin()
		})
		if did == "" || err != nil || !began {
			t.Errorf("%s: %q, error %v, has begun: %v", source, did, err, began)
		}
	}
}

// Nothing done is a stale. A failure is none, whether the restart has begun or not, and an agent
// that stops leaves systemd to what has begun.
func TestSystemdResults(t *testing.T) {
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errStopping)
	for name, c := range map[string]struct {
		ctx   context.Context
		begun bool
		err   error
		stale bool
	}{
		"nothing done":      {t.Context(), false, systemd.ErrNothingDone, true},
		"nothing done late": {t.Context(), true, systemd.ErrNothingDone, true},
		"failed to ask":     {t.Context(), false, errOfAgent, false},
		"failed":            {t.Context(), true, errOfAgent, false},
		"stopped early":     {stopped, false, errStopping, true},
		"stopped late":      {stopped, true, errStopping, false},
	} {
		q := unitRequest(t, config.SourceListener, "socket-1")
		q.begin = mayBegin
		_, err := restartUnitBy(c.ctx, q, func(_ context.Context, _ string, _ int, begin func() error) error {
			if c.begun {
				_ = begin()
			}
			return c.err
		})
		if err == nil || errors.As(err, new(stale)) != c.stale {
			t.Errorf("%s: got %v, want a stale: %v", name, err, c.stale)
		}
	}
}

// A bus that says nothing keeps nobody: when the agent stops, the act is dropped before it has
// begun.
func TestSystemdStopsAsking(t *testing.T) {
	socket := t.TempDir() + "/bus"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	r := New(Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := restartUnit(r.ctx, unitRequest(t, config.SourceListener, "socket-1"))
		ended <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r.Stop()
	err = testutil.Receive(t, ended, "the act")
	if !errors.As(err, new(stale)) || !strings.Contains(err.Error(), "the agent is stopping") {
		t.Errorf("got %v", err)
	}
}

// With the source process an instance has a process, by which its unit is known.
func TestSystemdWithoutProcess(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/bus")
	if _, err := restartUnit(t.Context(), unitRequest(t, config.SourceProcess, "a")); !errors.As(err, new(stale)) {
		t.Errorf("got %v, want a stale", err)
	}
}

// An act that the end of the agent cuts short can tell why.
func TestStopSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		w.does(func(ctx context.Context, _ *request) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		w.says("app", "bad")
		w.sleep(15 * time.Second)
		w.want(1, "before the end")
		w.r.Close()
		if s := w.status("app"); s.Counts != (Counts{Failed: 1}) || s.Acts[0].Message != "the agent is stopping, or its pod is" {
			t.Errorf("got %+v", s)
		}
	})
}

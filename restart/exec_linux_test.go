// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/dockerd"
)

func commandRequest(env []config.EnvVar, command ...string) *request {
	return &request{
		target:  &config.Target{Name: "app", Env: env, Restart: &config.Restart{Exec: &config.Exec{Command: command}, Systemd: &config.RestartSystemd{Unit: "shop.service"}}},
		longest: time.Minute, linger: time.Minute, begin: mayBegin,
	}
}

// A command runs as that of an exec probe: with the target's environment, bounded, and judged by
// its exit code.
func TestExec(t *testing.T) {
	q := commandRequest([]config.EnvVar{{Name: "WHAT", Value: "shop"}}, "sh", "-c", "echo restarted $WHAT $(WHAT)")
	if did, err := runCommand(t.Context(), q); err != nil || did != "the command has ended: restarted shop shop" {
		t.Errorf("%q, error %v", did, err)
	}
	if _, err := runCommand(t.Context(), commandRequest(nil, "sh", "-c", "echo no; exit 3")); err == nil || err.Error() != "the command has ended with exit code 3: no" {
		t.Errorf("got %v", err)
	}
	if _, err := runCommand(t.Context(), commandRequest(nil, "/no/such")); err == nil || !strings.Contains(err.Error(), `start command "/no/such"`) {
		t.Errorf("got %v", err)
	}
	q = commandRequest(nil, "sh", "-c", "sleep 3600")
	q.longest = 100 * time.Millisecond
	if _, err := runCommand(t.Context(), q); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("got %v", err)
	}
}

// Of a container a command is run only while the container runs, in that life.
func TestExecLooksAtTheContainer(t *testing.T) {
	f := dockerd.New(t)
	f.Set("app", 1, "running", 1)
	q := commandRequest(nil, "true")
	q.target.Instance = config.Instance{Source: config.SourceDocker, Container: "app", Socket: f.Socket}
	q.instance = containerRequest(t, f).instance
	if _, err := runCommand(t.Context(), q); err != nil {
		t.Errorf("a container that runs: %v", err)
	}
	f.Set("app", 1, "exited", 1)
	if _, err := runCommand(t.Context(), q); !errors.As(err, new(stale)) {
		t.Errorf("a container that has ended: %v", err)
	}
	q.target.Restart.Systemd = &config.RestartSystemd{Unit: "shop.service"}
	if _, err := restartUnitBy(t.Context(), q, calm); !errors.As(err, new(stale)) {
		t.Errorf("the same, with a unit: %v", err)
	}
}

// When the agent stops, a command is not killed: it gets a moment, and then goes on alone.
func TestExecLingers(t *testing.T) {
	dir := t.TempDir()
	fifo, done := filepath.Join(dir, "go"), filepath.Join(dir, "done")
	q := commandRequest(nil, "sh", "-c", "until [ -e "+fifo+" ]; do sleep 0.01; done; : >"+done)
	q.linger = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runCommand(ctx, q); err == nil || !strings.Contains(err.Error(), "leaves the command to itself") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(fifo, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testutil.Until(t, "the command ends by itself", func() bool {
		_, err := os.Stat(done)
		return err == nil
	})
	q = commandRequest(nil, "sh", "-c", "sleep 0.05")
	if _, err := runCommand(ctx, q); err != nil {
		t.Errorf("a command that ends in time: %v", err)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd restarts services that run, over D-Bus.
package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/dbus"
	bus "github.com/godbus/dbus/v5"
)

// ErrNotRunning says that the service does not run, or that somebody stops it: TryRestart has
// done nothing.
var ErrNotRunning = errors.New("nothing is restarted")

// TryRestart lets systemd restart a service, and waits until the service has started again. A
// service that is still starting is restarted as well. The wait lasts as long as the unit's
// TimeoutStopSec and TimeoutStartSec let it, or until ctx is done. systemd finishes the restart
// without its caller, who may be dead: the restart is a single job of systemd's. TryRestart never
// starts a service that does not run (ErrNotRunning), and replaces no job that stops one.
func TryRestart(ctx context.Context, unit string) error {
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return unconnected(ctx, err)
	}
	defer conn.Close()
	s := service{conn: conn, unit: unit}
	before, err := s.invocation(ctx)
	if err != nil {
		return err
	}
	if waits, err := s.waits(ctx); err != nil {
		return err
	} else if waits {
		return s.idle(ctx)
	}
	result := make(chan string, 1)
	// "fail": the job takes the place of no other.
	if _, err := conn.TryRestartUnitContext(ctx, unit, "fail", result); err != nil {
		return s.refused(ctx, err)
	}
	select {
	case r := <-result:
		if r != "done" {
			return fmt.Errorf("systemd did not restart %s: %s", unit, s.why(ctx, r))
		}
	case <-ctx.Done():
		return fmt.Errorf("systemd has not restarted %s yet and goes on: %w", unit, context.Cause(ctx))
	}
	// A job that found nothing to do is done, too.
	after, err := s.invocation(ctx)
	if err != nil || !bytes.Equal(before, after) {
		return err
	}
	return s.idle(ctx)
}

// service is a unit on a connection.
type service struct {
	conn *dbus.Conn
	unit string
}

// unconnected says in plain words why there is no connection.
func unconnected(ctx context.Context, err error) error {
	hint := ""
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		hint = " (D-Bus hangs up on a user that is not in /etc/passwd, such as that of DynamicUser=)"
	}
	return fmt.Errorf("cannot connect to systemd: the system bus: %w%s", ended(ctx, err), hint)
}

// invocation returns the ID that systemd gives to each start of the service.
func (s service) invocation(ctx context.Context) ([]byte, error) {
	v, err := s.property(ctx, "InvocationID")
	id, _ := v.([]byte)
	return id, err
}

// property returns a property of the unit. systemd has properties even of units that do not exist.
func (s service) property(ctx context.Context, name string) (any, error) {
	p, err := s.conn.GetUnitPropertyContext(ctx, s.unit, name)
	if err != nil {
		return nil, fmt.Errorf("cannot ask systemd about %s: %w", s.unit, ended(ctx, err))
	}
	return p.Value.Value(), nil
}

// idle returns why systemd had nothing to restart.
func (s service) idle(ctx context.Context) error {
	state, err := s.property(ctx, "ActiveState")
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is %v: %w", s.unit, state, ErrNotRunning)
}

// waits reports whether the service has ended and systemd is going to start it again by itself.
// A restart would start the service at once, without the rest of its RestartSec.
func (s service) waits(ctx context.Context) (bool, error) {
	v, err := s.property(ctx, "SubState")
	state, _ := v.(string)
	return strings.HasPrefix(state, "auto-restart"), err // -queued, too, since systemd 254
}

// refused says in plain words why systemd takes no job.
func (s service) refused(ctx context.Context, err error) error {
	var e bus.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("cannot ask systemd to restart %s: %w", s.unit, ended(ctx, err))
	}
	switch e.Name {
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		return fmt.Errorf("access denied: a rule of polkit must allow the agent's user to try-restart %s, as the rule in examples/systemd does (systemd says: %w)", s.unit, err)
	case "org.freedesktop.systemd1.NoSuchUnit":
		return fmt.Errorf("systemd knows no %s: %w", s.unit, err)
	case "org.freedesktop.systemd1.TransactionIsDestructive":
		if s.stopping(ctx) {
			return fmt.Errorf("%s is being stopped: %w", s.unit, ErrNotRunning)
		}
	}
	return fmt.Errorf("systemd refuses to restart %s: %w", s.unit, err)
}

// stopping reports whether a job waits or works on the service itself. Only a job that stops
// stands in the way of a restart.
func (s service) stopping(ctx context.Context) bool {
	v, err := s.property(ctx, "Job")
	job, _ := v.([]any)
	if err != nil || len(job) == 0 {
		return false
	}
	id, _ := job[0].(uint32)
	return id != 0
}

// why explains why a job of systemd's ended without a restart.
func (s service) why(ctx context.Context, result string) string {
	switch result {
	case "failed":
		p, err := s.conn.GetServicePropertyContext(ctx, s.unit, "Result")
		if err != nil {
			return "the service failed to start again"
		}
		result, _ := p.Value.Value().(string)
		if result == "start-limit-hit" {
			return "the service stays down, because it was started too often for StartLimitIntervalSec and StartLimitBurst of its unit (start-limit-hit)"
		}
		return "the service failed to start again (" + result + ")"
	case "timeout":
		return "the job took longer than its JobTimeoutSec (timeout)"
	case "canceled":
		return "somebody has canceled the job (canceled)"
	case "dependency":
		return "a unit that the service requires failed (dependency)"
	}
	return "the job ended with " + result
}

// ended prefers the end of ctx to what the end did to the connection.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

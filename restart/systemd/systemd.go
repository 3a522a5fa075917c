// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd restarts services that run, over D-Bus.
package systemd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	bus "github.com/godbus/dbus/v5"
)

// ErrNothingDone says that TryRestart has done nothing, because the service does not run, somebody
// stops it, or it is not what the caller means.
var ErrNothingDone = errors.New("nothing is restarted")

// errSilent is the end of a question without an answer.
var errSilent = fmt.Errorf("no answer within %v", askTime)

const (
	// askTime bounds the questions before a restart, with the connection.
	askTime = 10 * time.Second
	// slack is how much longer than the unit's own timeouts a restart may take.
	slack = 30 * time.Second
	// longest bounds the wait for a restart, whatever the unit says.
	longest = 10 * time.Minute
)

// TryRestart lets systemd restart a service, and waits until the service has started again. A
// service that is still starting is restarted as well. The wait lasts as long as the unit's
// TimeoutStopSec and TimeoutStartSec let it and a little longer, at most for 10 minutes, or until
// ctx is done. systemd finishes the restart without its caller, who may be dead: the restart is a
// single job of systemd's.
//
// TryRestart restarts the life that the service has at the time of the call, and no later one.
// That life must have the process pid, unless pid is 0. TryRestart never starts a service that does
// not run, and replaces no job that stops one (ErrNothingDone). TryRestart calls begin when nothing
// speaks against the restart; an error of begin is the result, and nothing is restarted.
func TryRestart(ctx context.Context, unit string, pid int, begin func() error) error {
	called := monotonic()
	ctx, cancel := context.WithCancelCause(ctx) // the connection lives as long
	defer cancel(nil)
	silence := time.AfterFunc(askTime, func() { cancel(errSilent) })
	defer silence.Stop()
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return unconnected(ctx, err)
	}
	defer conn.Close()
	s := service{conn: conn, unit: unit}
	life, err := s.invocation(ctx) // first, so that all that follows is said of this life or a later one
	if err != nil {
		return err
	}
	if err := s.runs(ctx, called); err != nil {
		return err
	}
	if err := s.has(ctx, pid); err != nil {
		return err
	}
	long, err := s.howLong(ctx)
	if err != nil {
		return err
	}
	if !silence.Stop() {
		return unconnected(ctx, errSilent)
	}
	if err := begin(); err != nil {
		return err
	}
	if err := s.still(ctx, life); err != nil {
		return err
	}
	ctx, end := context.WithTimeoutCause(ctx, long, fmt.Errorf("the restart takes longer than %v", long))
	defer end()
	return s.restart(ctx, life)
}

// restart lets systemd restart the service, which has that life, and waits for the result.
func (s service) restart(ctx context.Context, before []byte) error {
	result := make(chan string, 1)
	// "fail": the job takes the place of no other.
	if _, err := s.conn.TryRestartUnitContext(ctx, s.unit, "fail", result); err != nil {
		return s.refused(ctx, err)
	}
	select {
	case r := <-result:
		if r != "done" {
			return fmt.Errorf("systemd did not restart %s: %s", s.unit, s.why(ctx, r))
		}
	case <-ctx.Done():
		return s.left(ctx)
	}
	// A job that found nothing to do is done, too.
	after, err := s.invocation(ctx)
	if err != nil || !bytes.Equal(before, after) {
		return err
	}
	state, err := s.property(ctx, "ActiveState")
	if err != nil {
		return err
	}
	return s.idle(state)
}

// left says that the caller leaves the restart to systemd.
func (s service) left(ctx context.Context) error {
	return fmt.Errorf("systemd has not restarted %s yet and goes on alone: %w", s.unit, context.Cause(ctx))
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

// runs returns nil if the service runs or starts, and began to before that moment.
func (s service) runs(ctx context.Context, called uint64) error {
	state, err := s.property(ctx, "ActiveState")
	if err != nil {
		return err
	}
	switch state {
	case "inactive":
		if loaded, err := s.property(ctx, "LoadState"); err != nil || loaded == "not-found" {
			return cmp.Or(err, fmt.Errorf("systemd knows no %s", s.unit))
		}
		return s.idle(state)
	case "deactivating", "failed":
		return s.idle(state)
	}
	if waits, err := s.waits(ctx); err != nil {
		return err
	} else if waits {
		return s.idle(state)
	}
	since, err := s.property(ctx, "InactiveExitTimestampMonotonic")
	if at, _ := since.(uint64); err == nil && at > called {
		return s.replaced()
	}
	return err
}

// has returns nil if the process is one of the service's.
func (s service) has(ctx context.Context, pid int) error {
	if pid == 0 {
		return nil
	}
	id, err := s.property(ctx, "Id") // the unit may have other names
	if err != nil {
		return err
	}
	is, err := s.conn.GetUnitNameByPID(ctx, uint32(pid))
	var no bus.Error
	switch {
	case errors.As(err, &no) && strangers[no.Name]:
		return fmt.Errorf("the process %d does not belong to %s (systemd says: %w): %w", pid, s.unit, err, ErrNothingDone)
	case err != nil:
		return fmt.Errorf("cannot ask systemd about the process %d: %w", pid, ended(ctx, err))
	case is != id:
		return fmt.Errorf("the process %d does not belong to %s, but to %s: %w", pid, s.unit, is, ErrNothingDone)
	}
	return nil
}

// strangers has the errors that say that a process has ended or belongs to no unit.
var strangers = map[string]bool{
	"org.freedesktop.systemd1.NoUnitForPID":           true,
	"org.freedesktop.DBus.Error.UnixProcessIdUnknown": true,
	"System.Error.ESRCH":                              true,
}

// still returns nil if the service has that life.
func (s service) still(ctx context.Context, life []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, errSilent)
	defer cancel()
	now, err := s.invocation(ctx)
	if err == nil && !bytes.Equal(now, life) {
		return s.replaced()
	}
	return err
}

// howLong returns how long a restart of the service may take.
func (s service) howLong(ctx context.Context) (time.Duration, error) {
	long := slack
	for _, name := range []string{"TimeoutStopUSec", "TimeoutStartUSec"} {
		p, err := s.conn.GetServicePropertyContext(ctx, s.unit, name)
		if err != nil {
			return 0, fmt.Errorf("cannot ask systemd about %s: %w", s.unit, ended(ctx, err))
		}
		usec, _ := p.Value.Value().(uint64)
		if usec >= uint64(longest/time.Microsecond) { // infinity is a number, too
			return longest, nil
		}
		long += time.Duration(usec) * time.Microsecond
	}
	return min(long, longest), nil
}

// idle says that systemd has nothing to restart, because the service is in that state.
func (s service) idle(state any) error {
	return fmt.Errorf("%s is %v: %w", s.unit, state, ErrNothingDone)
}

// replaced says that the service has another life than that which the caller means.
func (s service) replaced() error {
	return fmt.Errorf("%s has been started anew meanwhile: %w", s.unit, ErrNothingDone)
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
	switch {
	case errors.As(err, &e):
	case ctx.Err() != nil: // systemd may have got the question
		return s.left(ctx)
	default:
		return fmt.Errorf("cannot ask systemd to restart %s: %w", s.unit, err)
	}
	switch e.Name {
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		return fmt.Errorf("access denied: a rule of polkit must allow the agent's user to try-restart %s, as the rule in examples/systemd does (systemd says: %w)", s.unit, err)
	case "org.freedesktop.systemd1.NoSuchUnit":
		return fmt.Errorf("systemd knows no %s: %w", s.unit, err)
	case "org.freedesktop.systemd1.TransactionIsDestructive":
		if s.stopping(ctx) {
			return fmt.Errorf("%s is being stopped: %w", s.unit, ErrNothingDone)
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

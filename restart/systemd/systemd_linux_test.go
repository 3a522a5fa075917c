// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	bus "github.com/godbus/dbus/v5"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

const shop = "shop.service"

// says compares an error with what it has to say, and whether it is ErrNothingDone.
func says(t *testing.T, err error, want string, nothingDone bool) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, want %q", want)
	case !strings.Contains(err.Error(), want):
		t.Errorf("%q, want %q", err, want)
	case errors.Is(err, ErrNothingDone) != nothingDone:
		t.Errorf("%q is ErrNothingDone: %v", err, !nothingDone)
	}
}

// A service that runs has another life when TryRestart returns.
func TestTryRestart(t *testing.T) {
	m := start(t, map[string]string{shop: "[Service]\nExecStart=/bin/sleep 1000"})
	m.started(shop)
	before := m.property(shop, "InvocationID")
	if err := try(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	if m.property(shop, "InvocationID") == before {
		t.Error("the service has the life that it had")
	}
	m.becomes(shop, "active")
}

// A service that does not run is never started, and TryRestart says so.
func TestTryRestartStartsNothing(t *testing.T) {
	m := start(t, map[string]string{
		shop:             "[Service]\nExecStart=/bin/sleep 1000",
		"broken.service": "[Service]\nExecStart=/bin/sh -c 'read line <DIR/end; exit 1'",
		"again.service":  "[Service]\nExecStart=/bin/sh -c 'read line <DIR/again'\nRestart=always\nRestartSec=infinity",
	})
	m.fifo("again")
	says(t, m.drops(shop), "shop.service is inactive: nothing is restarted", true)
	m.started(shop)
	testutil.Receive(t, m.stop(shop), "the end")
	says(t, m.drops(shop), "shop.service is inactive: nothing is restarted", true)
	if state := m.property(shop, "ActiveState"); state != "inactive" {
		t.Errorf("a service that was stopped is %s", state)
	}
	m.fifo("end")
	m.started("broken.service")
	m.release("end")
	m.becomes("broken.service", "failed")
	says(t, m.drops("broken.service"), "broken.service is failed: nothing is restarted", true)
	m.started("again.service")
	m.release("again")
	m.becomes("again.service", "activating")
	before := m.property("again.service", "InvocationID")
	says(t, m.drops("again.service"), "again.service is activating: nothing is restarted", true)
	if m.property("again.service", "InvocationID") != before {
		t.Error("a service that waits for its RestartSec has been started")
	}
	says(t, m.drops("nosuch.service"), "systemd knows no nosuch.service", false)
}

// Whoever has asked systemd to stop a service gets the end, and TryRestart gets out of the way:
// while the service ends, and while the end waits for that of another service.
func TestTryRestartLetsStop(t *testing.T) {
	m := start(t, map[string]string{
		shop:           "[Service]\nExecStart=/bin/sleep 1000\nExecStop=/bin/sh -c 'read line <DIR/end'",
		"wait.service": "[Unit]\nRequires=base.service\nAfter=base.service\n[Service]\nExecStart=/bin/sleep 1000\nExecStop=/bin/sh -c 'read line <DIR/wait'",
		"base.service": "[Service]\nExecStart=/bin/sleep 1000",
	})
	m.fifo("end")
	m.fifo("wait")
	m.started(shop)
	stopped := m.stop(shop)
	m.becomes(shop, "deactivating")
	says(t, m.drops(shop), "shop.service is ", true)
	m.release("end")
	testutil.Receive(t, stopped, "the end")
	if state := m.property(shop, "ActiveState"); state != "inactive" {
		t.Errorf("a service that was stopped is %s", state)
	}

	m.started("wait.service")
	stopped = m.stop("base.service")
	m.becomes("wait.service", "deactivating")
	if state := m.property("base.service", "ActiveState"); state != "active" {
		t.Fatalf("base.service is %s: its end does not wait", state)
	}
	says(t, try(t.Context(), "base.service"), "base.service is being stopped: nothing is restarted", true)
	m.release("wait")
	testutil.Receive(t, stopped, "the end")
	if state := m.property("base.service", "ActiveState"); state != "inactive" {
		t.Errorf("a service that was stopped is %s", state)
	}
}

// A service that hangs while it starts is restarted, too: systemd itself would wait for its
// TimeoutStartSec.
func TestTryRestartActivating(t *testing.T) {
	m := start(t, map[string]string{shop: "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep 1000"})
	if _, err := m.conn.StartUnitContext(t.Context(), shop, "replace", nil); err != nil {
		t.Fatal(err)
	}
	m.becomes(shop, "activating")
	before := m.property(shop, "InvocationID")
	ctx, cancel := context.WithCancel(t.Context())
	ended := m.restart(ctx, shop)
	testutil.Until(t, "another life begins", func() bool { return m.property(shop, "InvocationID") != before })
	cancel()
	says(t, testutil.Receive(t, ended, "the restart"), "systemd has not restarted shop.service yet and goes on alone: context canceled", false)
}

// The result of the job counts: the service may fail to start again, and somebody may stop it
// meanwhile.
func TestTryRestartJob(t *testing.T) {
	m := start(t, map[string]string{
		shop:            "[Service]\nExecStartPre=/bin/sh -c '! test -e DIR/broken'\nExecStart=/bin/sleep 1000",
		"often.service": "[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=1\n[Service]\nExecStart=/bin/sleep 1000",
		"slow.service":  "[Service]\nExecStart=/bin/sleep 1000\nExecStop=/bin/sh -c 'read line <DIR/end'",
	})
	m.started(shop)
	m.write("broken", "")
	says(t, try(t.Context(), shop), "systemd did not restart shop.service: the service failed to start again (exit-code)", false)
	m.started("often.service")
	says(t, try(t.Context(), "often.service"), "systemd did not restart often.service: the service stays down, because it was started too often for StartLimitIntervalSec and StartLimitBurst", false)

	m.fifo("end")
	m.started("slow.service")
	ended := m.restart(t.Context(), "slow.service")
	m.becomes("slow.service", "deactivating")
	stopped := m.stop("slow.service")
	says(t, testutil.Receive(t, ended, "the restart"), "systemd did not restart slow.service: somebody has canceled the job (canceled)", false)
	m.release("end")
	testutil.Receive(t, stopped, "the end")
}

// A caller that goes away leaves a service that is restarted all the same.
func TestTryRestartGoesOn(t *testing.T) {
	m := start(t, map[string]string{shop: "[Service]\nExecStart=/bin/sleep 1000\nExecStop=/bin/sh -c 'read line <DIR/end'"})
	m.fifo("end")
	m.started(shop)
	before := m.property(shop, "InvocationID")
	why := errors.New("the agent stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := m.restart(ctx, shop)
	m.becomes(shop, "deactivating")
	cancel(why)
	err := testutil.Receive(t, ended, "the restart")
	says(t, err, "systemd has not restarted shop.service yet and goes on alone: the agent stops", false)
	if !errors.Is(err, why) {
		t.Errorf("%q does not tell its cause", err)
	}
	m.release("end")
	m.becomes(shop, "active")
	if m.property(shop, "InvocationID") == before {
		t.Error("the service has the life that it had")
	}
}

// Without a bus there is an error, and one that says nothing keeps nobody.
func TestTryRestartNoBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/bus")
	says(t, try(t.Context(), shop), "cannot connect to systemd: the system bus: dial unix", false)

	socket := t.TempDir() + "/bus"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- try(ctx, shop) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	says(t, testutil.Receive(t, ended, "TryRestart"), "cannot connect to systemd: the system bus: context canceled", false)
}

// A bus that hangs up does so for one reason, mostly.
func TestTryRestartHungUp(t *testing.T) {
	socket := t.TempDir() + "/bus"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	ended := make(chan error, 1)
	go func() { ended <- try(t.Context(), shop) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	says(t, testutil.Receive(t, ended, "TryRestart"), "(D-Bus hangs up on a user that is not in /etc/passwd, such as that of DynamicUser=)", false)
}

// What systemd and the bus refuse is said with what to do about it.
func TestRefused(t *testing.T) {
	for name, want := range map[string]string{
		"org.freedesktop.DBus.Error.AccessDenied":                     "access denied: a rule of polkit must allow the agent's user to try-restart shop.service, as the rule in examples/systemd does (systemd says: no)",
		"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": "access denied: a rule of polkit must allow the agent's user to try-restart shop.service, as the rule in examples/systemd does (systemd says: no)",
		"org.freedesktop.systemd1.UnitMasked":                         "systemd refuses to restart shop.service: no",
	} {
		err := service{unit: shop}.refused(t.Context(), bus.Error{Name: name, Body: []any{"no"}})
		says(t, err, want, false)
	}
}

// fifo makes a file that a service waits for.
func (m *manager) fifo(name string) {
	m.t.Helper()
	if err := syscall.Mkfifo(m.path(name), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// release lets the service go that waits for a file.
func (m *manager) release(name string) {
	m.t.Helper()
	// Whoever opens it for reading and writing waits for nobody.
	f, err := os.OpenFile(m.path(name), os.O_RDWR, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString("go\n"); err != nil {
		m.t.Fatal(err)
	}
}

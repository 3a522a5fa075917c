// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// These tests show that TryRestart restarts the life that its caller means, and no other.

const sleeps = "[Service]\nExecStart=/bin/sleep 1000"

// operatorRestarts restarts a service as an operator does, and returns its new life.
func (m *manager) operatorRestarts(unit string) (life string) {
	m.t.Helper()
	done := make(chan string, 1)
	if _, err := m.conn.RestartUnitContext(m.t.Context(), unit, "replace", done); err != nil {
		m.t.Fatal(err)
	}
	if r := testutil.Receive(m.t, done, "the operator's restart"); r != "done" {
		m.t.Fatalf("the operator's restart: %s", r)
	}
	return m.property(unit, "InvocationID")
}

// The bus is slow, and meanwhile an operator restarts the service. The new life is left alone,
// whether its process is known or not.
func TestTryRestartSlowBus(t *testing.T) {
	m := start(t, map[string]string{shop: sleeps})
	m.started(shop)
	bus := strings.TrimPrefix(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=")
	for _, c := range []struct {
		name, want string
		pid        int
	}{
		{"unknown", "shop.service has been started anew meanwhile: nothing is restarted", 0},
		{"known", "nothing is restarted", m.pid(shop)},
	} {
		asked, release := slowBus(t, bus, m.path(c.name))
		ended := make(chan error, 1)
		go func() { ended <- m.dropsFor(shop, c.pid) }()
		testutil.Receive(t, asked, "a connection")
		life := m.operatorRestarts(shop)
		close(release)
		says(t, testutil.Receive(t, ended, "TryRestart"), c.want, true)
		if m.property(shop, "InvocationID") != life {
			t.Errorf("%s: the operator's new life has been restarted", c.name)
		}
	}
}

// slowBus puts itself before the bus. It tells when it is asked for a connection, and makes one
// after its release.
func slowBus(t *testing.T, bus, path string) (asked <-chan bool, release chan<- bool) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	told, released := make(chan bool, 1), make(chan bool)
	go func() {
		for { // the client connects twice
			a, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case told <- true:
			default:
			}
			<-released
			b, err := net.Dial("unix", bus)
			if err != nil {
				_ = a.Close()
				return
			}
			go forward(a, b)
			go forward(b, a)
		}
	}()
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+path)
	return told, released
}

// forward copies from one connection to the other, and ends both.
func forward(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// An operator restarts the service after all questions. The new life is left alone.
func TestTryRestartReplacedAtTheBeginning(t *testing.T) {
	m := start(t, map[string]string{shop: sleeps})
	m.started(shop)
	var life string
	err := TryRestart(t.Context(), shop, m.pid(shop), func() error {
		life = m.operatorRestarts(shop)
		return nil
	})
	says(t, err, "shop.service has been started anew meanwhile: nothing is restarted", true)
	if m.property(shop, "InvocationID") != life {
		t.Error("the operator's new life has been restarted")
	}
}

// The caller's last word counts.
func TestTryRestartMayNotBegin(t *testing.T) {
	m := start(t, map[string]string{shop: sleeps})
	m.started(shop)
	life, no := m.property(shop, "InvocationID"), errors.New("no")
	if err := TryRestart(t.Context(), shop, 0, func() error { return no }); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if m.property(shop, "InvocationID") != life {
		t.Error("the service has been restarted")
	}
}

// A process must be one of the service's, under any of the service's names: nobody restarts a
// service for another's process.
func TestTryRestartProcess(t *testing.T) {
	m := start(t, map[string]string{
		shop:            sleeps + "\n[Install]\nAlias=alias.service",
		"other.service": sleeps,
	})
	m.started(shop)
	m.started("other.service")
	life := m.property(shop, "InvocationID")
	says(t, m.dropsFor(shop, m.pid("other.service")), "does not belong to shop.service, but to other.service: nothing is restarted", true)
	ended := m.pid("other.service")
	testutil.Receive(t, m.stop("other.service"), "the end")
	says(t, m.dropsFor(shop, ended), "does not belong to shop.service (systemd says: ", true)
	if m.property(shop, "InvocationID") != life {
		t.Error("the service has been restarted")
	}
	if err := os.Symlink(m.path("systemd/user/"+shop), m.path("systemd/user/alias.service")); err != nil {
		t.Fatal(err)
	}
	if err := m.conn.ReloadContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{shop, "alias.service"} {
		begun := false
		err := TryRestart(t.Context(), unit, m.pid(shop), func() error {
			begun = true
			return nil
		})
		if err != nil || !begun || m.property(shop, "InvocationID") == life {
			t.Errorf("%s: error %v, begun: %v", unit, err, begun)
		}
		life = m.property(shop, "InvocationID")
	}
}

// The unit says how long its restart may take, and not for ever.
func TestHowLong(t *testing.T) {
	m := start(t, map[string]string{
		"default.service": sleeps,
		"short.service":   sleeps + "\nTimeoutStopSec=3\nTimeoutStartSec=500ms",
		"long.service":    sleeps + "\nTimeoutStopSec=400\nTimeoutStartSec=400",
		"never.service":   sleeps + "\nTimeoutStopSec=infinity\nTimeoutStartSec=1",
	})
	for unit, want := range map[string]time.Duration{
		"default.service": 90*time.Second + 90*time.Second + slack,
		"short.service":   3500*time.Millisecond + slack,
		"long.service":    longest,
		"never.service":   longest,
	} {
		if got, err := (service{m.conn, unit}).howLong(t.Context()); err != nil || got != want {
			t.Errorf("%s: %v, error %v, want %v", unit, got, err, want)
		}
	}
}

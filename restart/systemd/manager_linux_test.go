// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// busUnits are a bus on which everybody may do everything. systemd joins the bus that it has
// started itself.
var busUnits = map[string]string{
	"bus.conf": `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
		"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
	<busconfig>
		<listen>unix:path=DIR/bus</listen>
		<auth>EXTERNAL</auth>
		<policy context="default"><allow send_destination="*"/><allow eavesdrop="true"/><allow own="*"/></policy>
	</busconfig>`,
	"dbus.socket":  "[Socket]\nListenStream=DIR/bus",
	"dbus.service": "[Unit]\nRequires=dbus.socket\n[Service]\nExecStart=/usr/bin/dbus-daemon --config-file=DIR/systemd/user/bus.conf --address=systemd: --nofork",
	"bus.target":   "[Unit]\nRequires=dbus.service",
}

// manager is a real systemd, which manages services of the test alone. It runs as the manager of
// a user: there is no polkit to ask. Its services write to and wait for files in dir.
type manager struct {
	t    *testing.T
	dir  string
	conn *dbus.Conn
}

// start runs a systemd with these units, on a bus that TryRestart takes for the system's.
func start(t *testing.T, units map[string]string) *manager {
	t.Helper()
	needs.Root(t)
	program := "/lib/systemd/systemd"
	for _, path := range []string{program, "/usr/bin/dbus-daemon", "/usr/bin/unshare"} {
		if _, err := os.Stat(path); err != nil {
			needs.Missing(t, err)
		}
	}
	m := &manager{t: t, dir: t.TempDir()}
	socket := m.path("bus")
	if err := os.MkdirAll(m.path("systemd/user"), 0o700); err != nil {
		t.Fatal(err)
	}
	maps.Copy(units, busUnits)
	for name, text := range units {
		m.write("systemd/user/"+name, strings.ReplaceAll(text, "DIR", m.dir))
	}
	var said bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", `for group in $DIRS; do echo $$ >"$group/cgroup.procs" || exit; done
		exec unshare --mount --pid --fork --kill-child --mount-proc /bin/sh -c '
		mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/user &&
		"$PROGRAM" --user --unit=bus.target; exit'`) // as number 1 it would be the system's
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir, "PROGRAM=" + program, "DIRS=" + strings.Join(cgroups(t), " "), "XDG_CONFIG_HOME=" + m.dir,
		"XDG_RUNTIME_DIR=/run/user", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + socket, "SYSTEMD_LOG_TARGET=console",
	}
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("systemd: %s", said.String())
		}
	})
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	testutil.Eventually(t, "systemd is on the bus", func() error {
		conn, err := dbus.NewSystemConnectionContext(t.Context())
		if err != nil {
			return err
		}
		if _, err = conn.SystemStateContext(t.Context()); err != nil {
			conn.Close()
			return err
		}
		m.conn = conn
		return nil
	})
	t.Cleanup(m.conn.Close)
	return m
}

// cgroups makes control groups, for below them the manager makes its own. Where version 1 and 2
// are mounted side by side, systemd uses both.
func cgroups(t *testing.T) (dirs []string) {
	t.Helper()
	name := "prober-exporter-test-" + testutil.Unique() // for all: systemd uses one name for both
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			needs.Missing(t, err)
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) == 0 {
		needs.Missing(t, "control groups")
	}
	t.Cleanup(func() {
		testutil.Eventually(t, "the control groups are empty and go", func() error {
			for _, dir := range dirs { // the first has the processes, which make groups while they live
				if err := removeGroups(dir); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return dirs
}

// removeGroups removes a control group and those below it.
func removeGroups(dir string) error {
	below, err := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, procs := range below {
		err = errors.Join(err, removeGroups(filepath.Dir(procs)))
	}
	if removed := os.Remove(dir); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

func (m *manager) path(name string) string { return filepath.Join(m.dir, name) }

func (m *manager) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// started starts a service and waits for it.
func (m *manager) started(unit string) {
	m.t.Helper()
	done := make(chan string, 1)
	if _, err := m.conn.StartUnitContext(m.t.Context(), unit, "replace", done); err != nil {
		m.t.Fatal(err)
	}
	if r := testutil.Receive(m.t, done, "the start of "+unit); r != "done" {
		m.t.Fatalf("the start of %s: %s", unit, r)
	}
}

// stop asks for the end of a service. The channel tells when the service has ended.
func (m *manager) stop(unit string) <-chan string {
	m.t.Helper()
	done := make(chan string, 1)
	if _, err := m.conn.StopUnitContext(m.t.Context(), unit, "replace", done); err != nil {
		m.t.Fatal(err)
	}
	return done
}

func (m *manager) property(unit, name string) string {
	m.t.Helper()
	v, err := service{m.conn, unit}.property(m.t.Context(), name)
	if err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprint(v)
}

// becomes waits until a service is in a state.
func (m *manager) becomes(unit, state string) {
	m.t.Helper()
	testutil.Eventually(m.t, unit+" is "+state, func() error {
		if is := m.property(unit, "ActiveState"); is != state {
			return errors.New("it is " + is)
		}
		return nil
	})
}

// pid returns the number of the service's main process.
func (m *manager) pid(unit string) int {
	m.t.Helper()
	p, err := m.conn.GetServicePropertyContext(m.t.Context(), unit, "MainPID")
	if err != nil {
		m.t.Fatal(err)
	}
	pid, _ := p.Value.Value().(uint32)
	return int(pid)
}

// try restarts a service of which no process is known, and may begin.
func try(ctx context.Context, unit string) error {
	return TryRestart(ctx, unit, 0, func() error { return nil })
}

// drops calls TryRestart, which must not come so far as to begin.
func (m *manager) drops(unit string) error {
	m.t.Helper()
	return m.dropsFor(unit, 0)
}

func (m *manager) dropsFor(unit string, pid int) error {
	m.t.Helper()
	return TryRestart(m.t.Context(), unit, pid, func() error {
		m.t.Errorf("a restart of %s has begun", unit)
		return nil
	})
}

// restart calls TryRestart while the test goes on.
func (m *manager) restart(ctx context.Context, unit string) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- try(ctx, unit) }()
	return ended
}

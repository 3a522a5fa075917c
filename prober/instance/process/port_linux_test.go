// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// If two processes hold a socket, the older leads. When the older ends, the other leads.
func TestProcessPortShared(t *testing.T) {
	l := testutil.Listen(t, "tcp", ":0", false)
	port := testutil.PortOf(t, l)
	f := testutil.SocketOf(t, l)
	older := testutil.Orphan(t, "sleep "+testutil.Unique(), f)
	younger := testutil.Orphan(t, "sleep "+testutil.Unique(), f)
	f.Close()
	p, _ := watching(t)
	p.Watch(byPort("app", port))
	if got := p.Describe("app").PID; got != older {
		t.Errorf("%d leads, want %d", got, older)
	}
	testutil.Kill(t, older)
	lookUntil(t, p, "the younger leads", func() bool { return p.Describe("app").PID == younger })
}

// The leader of a port stays the leader while it holds one of the port's sockets. When it holds
// none, and another process does, the other leads.
func TestProcessPortHandedOver(t *testing.T) {
	old, port := owner(t, 0)
	p, _ := watching(t)
	p.Watch(byPort("app", port))
	first := p.Instance("app")
	next, _ := owner(t, port)
	for range 3 {
		p.Look(t.Context())
		if got := p.Instance("app"); got != first {
			t.Errorf("got %+v, want %+v", got, first)
		}
	}
	testutil.Kill(t, old)
	lookUntil(t, p, "the other leads", func() bool { return p.Describe("app").PID == next })
}

// A process that closes its socket and goes on leads until another process listens. Then that
// process is the instance, although the old process still runs.
func TestProcessPortClosed(t *testing.T) {
	l := testutil.Listen(t, "tcp", ":0", true)
	port := testutil.PortOf(t, l)
	f := testutil.SocketOf(t, l)
	old := testutil.Orphan(t, `sh -c 'trap "exec 3<&-" WINCH; while :; do sleep 0.02 3<&-; done'`, f)
	f.Close()
	p, _ := watching(t)
	p.Watch(byPort("app", port))
	first := p.Instance("app")
	if got := p.Describe("app").PID; got != old {
		t.Fatalf("%d leads, want %d", got, old)
	}
	// Before the shell has set its trap, a SIGWINCH does nothing.
	testutil.Until(t, "the port is free", func() bool {
		unix.Kill(old, unix.SIGWINCH)
		return len(inodesOn(t, port)) == 0
	})
	for range 3 {
		p.Look(t.Context())
		if got := p.Instance("app"); got != first || !p.Up() {
			t.Errorf("got %+v, want %+v, up %v", got, first, p.Up())
		}
	}
	next, _ := owner(t, port)
	lookUntil(t, p, "the other leads", func() bool { return p.Describe("app").PID == next })
}

// A service manager that holds the socket of a service does not lead. Of the port's two
// holders, systemd and the service, the service leads.
func TestProcessPortActivated(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	manager := filepath.Join(t.TempDir(), "systemd")
	if err := os.Symlink(sleep, manager); err != nil {
		t.Fatal(err)
	}
	l := testutil.Listen(t, "tcp", ":0", false)
	port := testutil.PortOf(t, l)
	f := testutil.SocketOf(t, l)
	testutil.Orphan(t, manager+" "+testutil.Unique(), f)
	service := testutil.Orphan(t, "sleep "+testutil.Unique(), f)
	f.Close()
	p, _ := watching(t)
	p.Watch(byPort("app", port))
	if got := p.Describe("app").PID; got != service {
		t.Errorf("%d leads, want %d", got, service)
	}
}

// A port whose owner is not among the visible processes is a trouble, and the log says so once.
// If nobody listens on the port any more, the trouble is over.
func TestProcessPortNobody(t *testing.T) {
	pid, port := owner(t, 0)
	p, log := watching(t)
	inode := inodesOn(t, port)[0]
	// In this proc file system no process has a socket.
	root := t.TempDir()
	os.Symlink(strconv.Itoa(os.Getpid()), filepath.Join(root, "self"))
	os.MkdirAll(filepath.Join(root, "1/fd"), 0o700)
	os.WriteFile(filepath.Join(root, "loadavg"), []byte("0 0 0 1/1 1\n"), 0o600)
	os.WriteFile(filepath.Join(root, "1/stat"), []byte("1 (init) S 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0"), 0o600)
	p.eyes.procs.Root = root
	p.Watch(byPort("app", port))
	for range 3 {
		p.Look(t.Context())
		if p.Up() || !strings.Contains(p.Describe("app").Message, "shareProcessNamespace") || p.Instance("app") != (gate.Instance{}) {
			t.Errorf("got %+v, %+v, up %v", p.Instance("app"), p.Describe("app"), p.Up())
		}
	}
	if n := log.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	// When a process has the socket, the source sees the process, 1 s later at most.
	os.Symlink("socket:["+strconv.FormatUint(inode, 10)+"]", filepath.Join(root, "1/fd/3"))
	lookUntil(t, p, "it is seen", func() bool { return p.Describe("app").PID == 1 })
	if !p.Up() || log.count("level=INFO") != 1 {
		t.Errorf("up %v, log:\n%s", p.Up(), log.String())
	}
	testutil.Kill(t, pid)
	lookUntil(t, p, "the port is free", func() bool { return len(p.eyes.on(int(port))) == 0 })
	if got := p.Instance("app"); got.Phase != gate.Running || !p.Up() {
		t.Errorf("got %+v, up %v: the process runs, and holds nothing", got, p.Up())
	}
}

// A trouble with reading sockets concerns the targets with a port, and no others.
func TestProcessPortBlind(t *testing.T) {
	pid, port := owner(t, 0)
	p, _ := watching(t)
	p.Watch(byFile("file", pidFile(t, "", strconv.Itoa(pid))))
	p.Watch(byPort("port", port))
	want := p.Instance("port")
	if p.eyes.sockets.How() != proc.BySockDiag {
		needs.Missing(t, "sock_diag")
	}
	p.eyes.sockets.Close()
	p.eyes.sockets.Dial = func() (*netlink.Conn, error) { return nil, unix.ENOBUFS }
	lookUntil(t, p, "the trouble is seen", func() bool { return !p.Up() })
	if p.Up() || p.Describe("port").Message == "" || p.Describe("file").Message != "" || p.Instance("port") != want {
		t.Errorf("up %v, %+v, %+v", p.Up(), p.Describe("port"), p.Describe("file"))
	}
	p.eyes.sockets.Dial = nil
	lookUntil(t, p, "the end of the trouble is seen", p.Up)
	if p.Instance("port") != want {
		t.Errorf("%+v", p.Describe("port"))
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// Without the right to see the owner of a port, the source says so once at load, and says what
// to do. By pid file and by command line, the source sees the same process.
func TestProcessDenied(t *testing.T) {
	needs.Root(t)
	t.Setenv("PID_DIR", shown(t))
	processHelper(t, "denied")
}

// shown returns a directory that everybody may look into.
func shown(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nobody gives up all rights of this process.
func nobody(t *testing.T) {
	t.Helper()
	if err := syscall.Setgroups(nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setresgid(65534, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setresuid(65534, 65534, 65534); err != nil {
		t.Fatal(err)
	}
}

func denied(t *testing.T) {
	pid, port := owner(t, 0)
	path := pidFile(t, filepath.Join(os.Getenv("PID_DIR"), "pid"), strconv.Itoa(pid))
	os.Chmod(path, 0o644)
	secret := pidFile(t, filepath.Join(os.Getenv("PID_DIR"), "secret"), strconv.Itoa(pid))
	command, err := (&proc.FS{Root: "/proc"}).Command(pid)
	if err != nil {
		t.Fatal(err)
	}
	nobody(t)
	p, log := watching(t)
	p.Watch(byFile("file", path))
	p.Watch(byMatch("match", "^"+command+"$"))
	if p.Describe("file").PID != pid || p.Describe("match").PID != pid || !p.Up() {
		t.Errorf("got %+v, %+v, want %d", p.Describe("file"), p.Describe("match"), pid)
	}
	p.Watch(byPort("port", port))
	lookUntil(t, p, "it is known", func() bool { return !p.Up() })
	if p.Instance("port") != (gate.Instance{}) || !strings.Contains(p.Describe("port").Message, "CAP_SYS_PTRACE") || log.count("CAP_SYS_PTRACE") != 1 {
		t.Errorf("got %+v, %+v, log:\n%s", p.Instance("port"), p.Describe("port"), log.String())
	}
	p.Watch(byFile("secret", secret))
	if !strings.Contains(p.Describe("secret").Message, "permission denied") || log.count("permission denied") != 1 {
		t.Errorf("got %+v, log:\n%s", p.Describe("secret"), log.String())
	}
}

// With hidepid on /proc, the processes of other users seem not to exist. For a pid file and for
// a command line that is a trouble, not an end.
func TestProcessHidden(t *testing.T) {
	needs.Root(t)
	processHelper(t, "hidden", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
}

func hidden(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	path := pidFile(t, filepath.Join(shown(t), "pid"), strconv.Itoa(cmd.Process.Pid))
	os.Chmod(path, 0o644)
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_REMOUNT, "hidepid=2"); err != nil {
		t.Fatal(err)
	}
	// Nobody can hide processes from this process, the first of the namespace, so a child
	// looks.
	child := exec.Command(os.Args[0], "-test.run=^TestProcessHelper$", "-test.v")
	child.Env = append(os.Environ(), processHelperEnv+"=elsewhere", "PID_FILE="+path)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// elsewhere looks at a process of root as a user who may see no processes of root.
func elsewhere(t *testing.T) {
	nobody(t)
	p, log := watching(t)
	p.Watch(byFile("file", os.Getenv("PID_FILE")))
	p.Watch(byMatch("match", "^sleep 60$"))
	for _, name := range []string{"file", "match"} {
		if !strings.Contains(p.Describe(name).Message, "hidepid") || p.Instance(name) != (gate.Instance{}) {
			t.Errorf("%s: got %+v, %+v", name, p.Instance(name), p.Describe(name))
		}
	}
	if p.Up() || log.count("hidepid") != 2 {
		t.Errorf("up %v, log:\n%s", p.Up(), log.String())
	}
}

// If a filter of system calls refuses pidfd_open, the source polls, and sees an end within 250
// ms. If the filter refuses netlink sockets, the source reads /proc/net/tcp.
func TestProcessFiltered(t *testing.T) {
	processHelper(t, "filtered")
}

func filtered(t *testing.T) {
	if err := refuse(unix.AF_NETLINK); err != nil {
		t.Fatal(err)
	}
	pid, port := owner(t, 0)
	p, _ := watching(t)
	p.Watch(byPort("port", port))
	p.Watch(byFile("file", pidFile(t, "", strconv.Itoa(pid))))
	if p.Describe("port").PID != pid || p.Describe("file").PID != pid || p.eyes.sockets.How() != proc.ByProcNet {
		t.Errorf("got %+v, %+v by %s", p.Describe("port"), p.Describe("file"), p.eyes.sockets.How())
	}
	told, _ := run(t, p)
	for range 2 {
		<-told
	}
	fastest := time.Hour
	for range 4 {
		begin := time.Now()
		testutil.Kill(t, p.Describe("file").PID)
		within(t, p, "file", gate.Terminated)
		fastest = min(fastest, time.Since(begin))
		p.Watch(byFile("file", pidFile(t, "", strconv.Itoa(testutil.Orphan(t, "sleep "+testutil.Unique())))))
		within(t, p, "file", gate.Running)
	}
	if fastest > 250*time.Millisecond {
		t.Errorf("the source sees an end after %v at best", fastest)
	}
}

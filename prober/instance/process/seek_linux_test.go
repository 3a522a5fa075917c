// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/gate"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// lookUntil looks until so reports true. A look walks over all processes only if the last walk
// was long enough ago.
func lookUntil(t *testing.T, p *Source, what string, so func() bool) {
	t.Helper()
	testutil.Until(t, what, func() bool { p.Look(t.Context()); return so() })
}

// Of three processes that match, the oldest leads while it runs, and then the next oldest.
func TestProcessMatchOldest(t *testing.T) {
	word := testutil.Unique()
	var pids []int
	for range 3 {
		pids = append(pids, testutil.Orphan(t, "sleep "+word))
	}
	p, _ := watching(t)
	p.Watch(byMatch("app", word))
	for i, pid := range pids {
		lookUntil(t, p, "it leads", func() bool { return p.Describe("app").PID == pid })
		if younger := testutil.Orphan(t, "sleep "+word); i == 0 {
			defer testutil.Kill(t, younger)
		} else {
			testutil.Kill(t, younger)
		}
		p.Look(t.Context())
		if got := p.Describe("app").PID; got != pid {
			t.Errorf("%d leads, want %d", got, pid)
		}
		testutil.Kill(t, pid)
	}
}

// The agent does not match, and neither do the processes that it has started, such as the
// command of a probe. A kernel thread, whose command line is empty, does not match either, nor
// does a zombie.
func TestProcessMatchOthersOnly(t *testing.T) {
	word := testutil.Unique()
	for _, command := range []string{"exec sleep " + word, "sleep " + word + "; :"} {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
	p, _ := watching(t)
	p.Watch(byMatch("app", word))
	p.Watch(byMatch("agent", "test.timeout=|"+strings.ReplaceAll(os.Args[0], ".", `\.`)+" .*"+word))
	p.Watch(byMatch("kernel", "^$"))
	for range 3 {
		p.eyes.scanNext = time.Time{}
		p.eyes.scan = nil
		p.Look(t.Context())
	}
	for _, name := range []string{"app", "kernel"} {
		if got := p.Instance(name); got != (gate.Instance{}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if d := p.Describe("agent"); d.PID == os.Getpid() {
		t.Errorf("got %+v: that is the agent", d)
	}
	pid := testutil.Orphan(t, "sleep "+word)
	lookUntil(t, p, "it leads", func() bool { return p.Describe("app").PID == pid })
}

// A process may have any name. The source reads a process with the name ") S 1 (" correctly.
func TestProcessName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), ") S 1 (")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	word := testutil.Unique()
	pid := testutil.Orphan(t, "'"+path+"' "+word)
	procs := proc.FS{Root: "/proc"}
	is, err := procs.Stat(pid)
	if err != nil || is.Name != ") S 1 (" || is.Ended || is.Start == 0 {
		t.Errorf("got %+v, %v", is, err)
	}
	p, _ := watching(t)
	p.Watch(byMatch("app", `\) S 1 \( `+word))
	run(t, p)
	testutil.Until(t, "it leads", func() bool { return p.Describe("app").PID == pid })
}

// With an unusable proc file system the source sees nothing, and everything stays. The log has
// one warning, and one line at the end of the trouble, however many targets there are.
func TestProcessBroken(t *testing.T) {
	p, log := watching(t)
	pid := testutil.Orphan(t, "sleep "+testutil.Unique())
	file := pidFile(t, "", strconv.Itoa(pid))
	p.Watch(byFile("a", file))
	p.Watch(byFile("b", file))
	want := p.Instance("a")
	elsewhere := t.TempDir()
	os.Symlink("1", filepath.Join(elsewhere, "self"))
	for _, root := range []string{t.TempDir(), elsewhere} {
		p.eyes.procs.Root = root
		p.Look(t.Context())
		p.Look(t.Context())
		if p.Up() || p.Instance("a") != want || p.Describe("b").Message == "" || p.Describe("a").PID != pid {
			t.Errorf("up %v, %+v, %+v", p.Up(), p.Instance("a"), p.Describe("b"))
		}
	}
	if n := log.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	p.eyes.procs.Root = "/proc"
	p.Look(t.Context())
	if !p.Up() || log.count("level=INFO") != 1 {
		t.Errorf("up %v, log:\n%s", p.Up(), log.String())
	}
}

// A process that cannot be read may well run. Its instance stays, whichever of its files is
// bad.
func TestProcessUnreadable(t *testing.T) {
	root := t.TempDir()
	os.Symlink(strconv.Itoa(os.Getpid()), filepath.Join(root, "self"))
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		os.RemoveAll(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const stat = "1 (app) S 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0"
	put("1/stat", stat)
	put("1/status", "Name:\tapp\nTgid:\t1\n")
	put("1/cmdline", "app\x00")
	put("loadavg", "0 0 0 1/1 1\n")
	file := pidFile(t, "", "1")
	for _, target := range []*config.Target{byFile("app", file), byMatch("app", "^app$")} {
		p, _ := watching(t)
		p.eyes.procs.Root = root
		p.Watch(target)
		want := p.Instance("app")
		if want.Phase != gate.Running || !strings.HasPrefix(want.ID, "00000000/1/7") {
			t.Fatalf("got %+v", want)
		}
		for _, text := range []string{"", "1 app S 0", "1 (app) S 0 1", strings.Replace(stat, " 7 ", " x ", 1)} {
			put("1/stat", text)
			p.Look(t.Context())
			if got := p.Instance("app"); got != want || p.Up() {
				t.Errorf("stat is %q: got %+v, up %v", text, got, p.Up())
			}
			p.Watch(target)
		}
		put("1/stat", stat)
		p.Look(t.Context())
		if got := p.Instance("app"); got != want || !p.Up() {
			t.Errorf("got %+v, up %v", got, p.Up())
		}
	}
	for name, texts := range map[string][]string{"1/status": {"Name:\tapp\n", "-"}, "1/stat": {"1 app"}} {
		for _, text := range texts {
			put(name, text)
			if text == "-" {
				os.Remove(filepath.Join(root, name))
				os.Mkdir(filepath.Join(root, name), 0o700)
			}
			p, _ := watching(t)
			p.eyes.procs.Root = root
			p.Watch(byFile("app", file))
			if p.Up() || p.Instance("app") != (gate.Instance{}) {
				t.Errorf("%s is %q: up %v, %+v", name, text, p.Up(), p.Instance("app"))
			}
		}
		put("1/status", "Name:\tapp\nTgid:\t1\n")
	}
	put("1/stat", stat)
	os.Remove(filepath.Join(root, "1/cmdline"))
	os.Mkdir(filepath.Join(root, "1/cmdline"), 0o700)
	p, _ := watching(t)
	p.eyes.procs.Root = root
	p.Watch(byMatch("app", "^app$"))
	if p.Up() || !strings.Contains(p.Describe("app").Message, "hidepid") {
		t.Errorf("up %v, %+v", p.Up(), p.Describe("app"))
	}
	put("loadavg", "0\n")
	if newest, err := p.eyes.procs.Newest(); err == nil {
		t.Errorf("got %q", newest)
	}
	os.Remove(filepath.Join(root, "loadavg"))
	if newest, err := p.eyes.procs.Newest(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %q, %v", newest, err)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// Restarts by the agent, of a real process that fails its liveness probe while a file exists.

// patient is a process with a liveness probe, which writes down its signals.
type patient struct {
	t   *testing.T
	dir string
}

func newPatient(t *testing.T) *patient { return &patient{t, t.TempDir()} }

func (p *patient) path(name string) string { return filepath.Join(p.dir, name) }

func (p *patient) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// start starts a life of the process; onTerm is what it does at SIGTERM.
func (p *patient) start(onTerm string) (pid int) {
	p.t.Helper()
	p.write("app.sh", "trap 'echo TERM >>"+p.path("signals")+"; "+onTerm+"' TERM\n: >"+p.path("runs")+"\nwhile :; do sleep 0.01; done\n")
	os.Remove(p.path("runs"))
	pid = testutil.Orphan(p.t, "/bin/sh "+p.path("app.sh"))
	testutil.Until(p.t, "the process runs", func() bool { return p.exists("runs") })
	return pid
}

func (p *patient) exists(name string) bool {
	_, err := os.Stat(p.path(name))
	return err == nil
}

// fails makes the liveness probe fail, or not.
func (p *patient) fails(fails bool) {
	p.t.Helper()
	if fails {
		p.write("broken", "")
	} else if err := os.Remove(p.path("broken")); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) signals() string {
	text, _ := os.ReadFile(p.path("signals"))
	return strings.ReplaceAll(string(text), "\n", " ")
}

// file writes a configuration with more keys of the target.
func (p *patient) file(more ...string) string {
	return testutil.Write(p.t, p.config(more...))
}

func (p *patient) config(more ...string) string {
	return fmt.Sprintf(`
targets:
  - name: app
    env: [{name: TOKEN, value: s3cret-token}]
    instance: {source: process, match: '^/bin/sh %[1]s$'}
    livenessProbe:
      exec: {command: [sh, -c, 'if [ -e %[2]s ]; then echo dead, $TOKEN; exit 1; fi']}
      periodSeconds: 0.1
      failureThreshold: 2
    %[3]s
`, p.path("app.sh"), p.path("broken"), strings.Join(more, "\n    "))
}

func runsStill(pid int) bool { return syscall.Kill(pid, 0) == nil && !isZombie(pid) }

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

const bySignal = "restart: {signal: {}, terminationGracePeriodSeconds: 2, backOff: {initialSeconds: 0.2, maxSeconds: 0.2}}"

// The agent signals a process whose liveness probe fails, once for each life. The log tells each
// act once, without secrets.
func TestActBySignal(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	pid := p.start("exit")
	a := start(t, p.file(bySignal))
	a.Says(a.Health+"/live/app", 200, "ok")
	p.fails(true)
	testutil.Until(t, "the process has ended", func() bool { return !runsStill(pid) })
	a.Logs("level=warn", "restarting the target", "target=app", "probe_type=Liveness", "reason=exit_code", "attempt=2/2", "handler=signal", "dead, <redacted>")
	a.Logs("level=info", "restart done", "target=app", fmt.Sprintf("process %d has got SIGTERM, and ended", pid))
	a.Says(a.Health+"/live/app", 200, "")
	p.fails(false)
	next := p.start("exit")
	a.Logs("new instance", "restarts=1")
	testutil.Wait(t, 500*time.Millisecond)
	if !runsStill(next) || p.signals() != "TERM " {
		t.Errorf("the next life runs: %t, signals %q", runsStill(next), p.signals())
	}
	if n := a.Log.Count("restarting the target"); n != 1 || strings.Contains(a.Log.String(), "s3cret-token") {
		t.Errorf("%d acts in the log:\n%s", n, a.Log)
	}
}

// A process that does not end gets SIGKILL after the grace period.
func TestActKills(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	pid := p.start("true")
	p.fails(true)
	a := start(t, p.file(bySignal))
	a.Logs("restart done", fmt.Sprintf("process %d has got SIGTERM, and SIGKILL after 2s", pid))
	if runsStill(pid) || p.signals() != "TERM " {
		t.Errorf("runs: %t, signals %q", runsStill(pid), p.signals())
	}
}

// An application that drains fails its liveness probe, and gets no second signal: the preStop hook
// has told the agent that the pod is being deleted. Without the hook it gets one.
func TestActDrain(t *testing.T) {
	t.Parallel()
	for _, hook := range []bool{true, false} {
		t.Run(fmt.Sprint("hook ", hook), func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			pid := p.start("true")
			a := start(t, p.file(bySignal))
			a.Says(a.Health+"/live/app", 200, "ok")
			testutil.Wait(t, 300*time.Millisecond) // the wait of an agent that has just started
			if hook {
				if status, body := testutil.Do(t, http.MethodPost, a.Health+"/-/terminating"); status != 200 {
					t.Fatalf("%d %s", status, body)
				}
			}
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil { // as a kubelet does
				t.Fatal(err)
			}
			testutil.Until(t, "it drains", func() bool { return p.signals() == "TERM " })
			p.fails(true)
			if !hook {
				testutil.Until(t, "a second signal", func() bool { return p.signals() == "TERM TERM " })
				return
			}
			testutil.Wait(t, time.Second)
			if !runsStill(pid) || p.signals() != "TERM " {
				t.Errorf("runs: %t, signals %q", runsStill(pid), p.signals())
			}
		})
	}
}

// SIGTERM of the agent never becomes a SIGKILL of the application: in the middle of the grace
// period the agent ends at once, and the process runs on. So it does when the agent is killed. The
// next agent waits, and finishes.
func TestActShutdown(t *testing.T) {
	t.Parallel()
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			pid := p.start("true")
			p.fails(true)
			file := p.file(strings.Replace(bySignal, "Seconds: 2", "Seconds: 6", 1))
			a := agenttest.StartProcess(t, "", agenttest.Flags(file)...)
			testutil.Until(t, "the process has got SIGTERM", func() bool { return p.signals() == "TERM " })
			began := time.Now()
			if err := a.Cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			if code := a.Wait(); end == syscall.SIGTERM && code != 0 {
				t.Errorf("exit code %d:\n%s", code, a.Log)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the agent took %v to end", took)
			}
			testutil.Wait(t, 6500*time.Millisecond) // the grace period is over
			if !runsStill(pid) {
				t.Fatalf("the process was killed:\n%s", a.Log)
			}
			testutil.Rewrite(t, file, p.config(bySignal))
			b := agenttest.StartProcess(t, "", agenttest.Flags(file)...)
			b.Logs("restart done", "SIGKILL after 2s")
			if runsStill(pid) {
				t.Error("the process runs still")
			}
		})
	}
}

// A reload turns restarts on and off, and a mistake in the block changes nothing.
func TestActReload(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	pid := p.start("true")
	p.fails(true)
	file := p.file()
	a := start(t, file, withRequests)
	reload := func(status int, more ...string) {
		t.Helper()
		testutil.Rewrite(t, file, p.config(more...))
		if got, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); got != status {
			t.Fatalf("%d %s", got, body)
		}
	}
	a.Says(a.Health+"/live/app", 503, "")
	testutil.Wait(t, 300*time.Millisecond)
	if got := p.signals(); got != "" {
		t.Errorf("signals %q without a block", got)
	}
	reload(500, "restart: {signal: {}, docker: {}}")
	reload(200, "restart: {exec: {command: [sh, -c, 'echo $TOKEN >>"+p.path("acts")+"; exit 4']}, backOff: {initialSeconds: 0.2, maxSeconds: 0.2}}")
	a.Logs("restart failed", "the command has ended with exit code 4")
	a.Is(a.Web+"/config", 200, "initialSeconds: 0.2")
	reload(200)
	n := a.Log.Count("restarting the target")
	testutil.Wait(t, 500*time.Millisecond)
	if got := a.Log.Count("restarting the target"); got > n+1 || !runsStill(pid) || !p.exists("acts") {
		t.Errorf("%d acts after the end of the block, runs: %t", got-n, runsStill(pid))
	}
}

// Without a configuration nothing is ever done.
func TestActFailOpen(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	pid := p.start("true")
	p.fails(true)
	a := start(t, testutil.Write(t, "targets: [{"), failOpen)
	a.Says(a.Health+"/live/app", 200, "")
	testutil.Wait(t, 500*time.Millisecond)
	if !runsStill(pid) || p.signals() != "" {
		t.Errorf("runs: %t, signals %q", runsStill(pid), p.signals())
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// The one-shot client prints the answer, and exits with 0 only for 200.
func TestHealthCheck(t *testing.T) {
	app := agenttest.NewApp(t)
	a := start(t, agenttest.Flags(testutil.Write(t, "targets:"+app.Target("app")))...)
	a.Says(a.Health+"/ready", 200, "ok")
	for url, want := range map[string]int{
		a.Health + "/ready/app":    0,
		a.Health + "/ready/nobody": 1,
		"http://127.0.0.1:1/":      1,
		"nonsense://":              1,
		a.Health[len("http://"):]:  1,
		"http://bad host/":         1,
	} {
		var log bytes.Buffer
		if code := run(context.Background(), []string{"--health.check=" + url}, &log); code != want {
			t.Errorf("%s: exit %d, want %d: %s", url, code, want, log.String())
		}
	}
}

// hook runs the preStop hook with the flags of an agent, in this process.
func hook(t *testing.T, args ...string) string {
	t.Helper()
	var said testutil.Log
	if code := run(context.Background(), append([]string{"--terminating"}, args...), &said); code != exitOK {
		t.Errorf("%q: exit %d, said %q", args, code, said.String())
	}
	return said.String()
}

// The hook ends liveness and startup for good, on the health listener or on the web listener.
// No reload brings them back, whether it changes the targets or not. Readiness goes on, and the
// agent logs one line. Without an agent the hook exits with 0, too.
func TestTerminating(t *testing.T) {
	for _, listener := range []string{"health", "web"} {
		app, other := agenttest.NewApp(t), agenttest.NewApp(t)
		file := testutil.Write(t, "targets:"+app.Target("app"))
		a := start(t, agenttest.Flags(file, "--web.enable-lifecycle")...)
		a.Says(a.Health+"/ready", 200, "ok")
		app.Broken.Store(true)
		a.Says(a.Health+"/live/app", 503, "[-]app failed: liveness: http_status (2/2)")
		address := strings.TrimPrefix(map[string]string{"health": a.Health, "web": a.Web}[listener], "http://")
		for range 2 {
			if said := hook(t, "--"+listener+".listen-address="+address); !strings.Contains(said, address+" has ended its startup and liveness probes") {
				t.Errorf("said %q", said)
			}
		}
		a.Is(a.Health+"/live/app", 200, "[?] pod terminating")
		a.Is(a.Health+"/ready/app", 503, "[-]app failed: readiness: http_status")
		app.Broken.Store(false)
		a.Says(a.Health+"/ready", 200, "ok")
		testutil.Rewrite(t, file, "targets:"+app.Target("app", "    labels: {now: other}")+other.Target("other"))
		if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != 200 {
			t.Fatalf("reload: %d %s", status, body)
		}
		a.Says(a.Health+"/ready", 200, "ok")
		for _, series := range []string{`now="other",probe_type="Liveness",result="successful",target="app"`, `probe_type="Liveness",result="successful",target="other"`} {
			if got := a.Metric("prober_probe_total{" + series + "}"); got != "0" {
				t.Errorf("%s is %q after the reload, want 0", series, got)
			}
		}
		if n := strings.Count(a.Log.String(), "pod terminating"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, a.Log)
		}
		a.Stop()
		if said := hook(t, "--"+listener+".listen-address="+address); !strings.Contains(said, "--terminating: ") {
			t.Errorf("without an agent: said %q", said)
		}
	}
}

// An agent that gets the hook's request at the pod's address, as from another pod, ignores the
// request and goes on.
func TestTerminatingFromElsewhere(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ip := address.(*net.IPNet).IP
		if ip.IsLoopback() || ip.To4() == nil {
			continue
		}
		free, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		free.Close()
		a := start(t, agenttest.Flags(testutil.Write(t, "targets: []\n"), "--health.listen-address="+free.Addr().String())...)
		if said := hook(t, "--health.listen-address="+free.Addr().String()); !strings.Contains(said, "answers 403 Forbidden: Only a command on the agent's own machine") {
			t.Errorf("from %v: said %q", ip, said)
		}
		a.Is(a.Health+"/live?verbose", 200, "live check passed")
		return
	}
	needs.Missing(t, "an address beside those of loopback")
}

// client runs a process of the binary, as it is shipped.
func client(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	cmd := agenttest.Command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	_ = cmd.Run() // the exit code says how it ended
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// The client's process, as it is shipped, asks a real agent: only the agent's verdict on a
// target fails the check, whichever way the process asks.
func TestFailOpen(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("app"))
	a := start(t, agenttest.Flags(file)...)
	without := start(t, agenttest.Flags(testutil.Write(t, "nonsense"), "--config.fail-open")...)
	ask := func(url string, wantCode int, wantOut, wantErr string) {
		t.Helper()
		early := []string{"--health.check=" + url, "--health.check.fail-open"}
		for _, args := range [][]string{early, append(early, "--log.level=info"), append(early, "--health.check.wait=100ms")} {
			code, out, said := client(t, args...)
			for range 20 { // a starved client is late, and passes
				if !strings.Contains(said, "no answer in time") {
					break
				}
				code, out, said = client(t, args...)
			}
			if code != wantCode || out != wantOut || !strings.Contains(said, wantErr) || wantErr == "" && len(args) < 3 && said != "" {
				t.Errorf("%q: exit %d, printed %q, said %q, want %d, %q, %q", args, code, out, said, wantCode, wantOut, wantErr)
			}
		}
	}
	a.Says(a.Health+"/ready", 200, "ok")
	ask(a.Health+"/live/app", 0, "ok\n", "")
	ask(a.Health+"/live/other", 0, "[?]other unknown target: not probed\nok\n", "")
	ask(a.Health+"/ready/other", 0, "", "the answer has status 404")
	ask(without.Health+"/live/app", 0, "[?] no configuration\nok\n", "")
	ask(without.Health+"/started/app", 0, "", "not an agent's verdict")
	ask(without.Health+"/-/ready", 0, "", "not an agent's verdict")
	app.Broken.Store(true)
	const dead = "[-]app failed: liveness: http_status (2/2)\nlive check failed\n"
	a.Says(a.Health+"/live/app", 503, dead)
	ask(a.Health+"/live/app", 1, dead, "")
	ask(a.Health+"/live", 1, dead, "")
	ask(a.Web+"/live/app", 1, dead, "")
	ask(a.Health+"/ready/app", 1, "[-]app failed: readiness: http_status (1/1)\nready check failed\n", "")
	a.Stop()
	ask(a.Health+"/live/app", 0, "", "nobody answers: connection refused")
}

// The client waits until a target is ready, for as long as it may.
func TestHealthCheckWait(t *testing.T) {
	app := agenttest.NewApp(t)
	app.Broken.Store(true)
	a := start(t, agenttest.Flags(testutil.Write(t, "targets:"+app.Target("app")))...)
	var said testutil.Log
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), []string{"--health.check=" + a.Health + "/ready/app", "--health.check.wait=20s"}, &said)
	}()
	a.Eventually("the client says that the target fails", func() error {
		if !strings.Contains(said.String(), " s: 503: [-]app failed: readiness: http_status (1/1); ready check failed\n") {
			return errors.New(said.String())
		}
		return nil
	})
	app.Broken.Store(false)
	if code := testutil.Receive(t, ended, "the client ends"); code != exitOK || !strings.HasSuffix(said.String(), " s: 200: ok\n") {
		t.Errorf("exit %d, said %s", code, said.String())
	}
}

// Flags of the client that make no sense are errors.
func TestClientFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--health.check.fail-open"},
		{"--health.check.wait=1s"},
		{"--health.check="},
		{"--health.check=http://127.0.0.1/", "--health.check.wait=-1s"},
		{"--health.check=http://127.0.0.1/", "--health.check.wait=soon"},
		{"--health.check=http://127.0.0.1/", "--copy-to=/"},
		{"--copy-to="},
		{"--copy-to=/", "--terminating"},
	} {
		var said bytes.Buffer
		if code := run(context.Background(), args, &said); code != exitUsage || !strings.HasPrefix(said.String(), "prober_exporter: error: ") {
			t.Errorf("%q: exit %d, said %q", args, code, said.String())
		}
	}
}

// A copy of the binary is the client of the same agent.
func TestCopyOfTheBinary(t *testing.T) {
	directory := t.TempDir()
	if out, err := agenttest.Command(t, "--copy-to="+directory).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a := start(t, agenttest.Flags(testutil.Write(t, "targets: []\n"))...)
	out, err := exec.Command(directory+"/prober_exporter", "--health.check="+a.Health+"/live", "--health.check.fail-open").CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
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

// The example runs as it stands, with only the port changed: the target is ready within two
// seconds, and its attempts count.
func TestExample(t *testing.T) {
	example, err := os.ReadFile("config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	port := testutil.Port(t)
	address := "127.0.0.1:" + port
	file := testutil.Write(t, strings.ReplaceAll(string(example), "9709", port))
	begin := time.Now()
	a := start(t, "--config.file="+file, "--web.listen-address="+address)
	a.Says(a.Web+"/ready?verbose", 200, "[+]self ok, since ")
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("ready after %v, want 2 s at most", took)
	}
	a.Is(a.Web+"/ready?verbose", 200, "ready check passed")
	for _, series := range []string{
		`prober_probe_total{probe_type="Readiness",result="successful",target="self",team="platform"}`,
		`prober_probe_total{probe_type="Liveness",result="successful",target="command"}`,
	} {
		a.Eventually(series+" counts", func() error {
			if got := a.Metric(series); got == "" || got == "0" {
				return fmt.Errorf("the metric is %q", got)
			}
			return nil
		})
	}
	if strings.Contains(a.Log.String(), "level=warn") || strings.Contains(a.Log.String(), "level=error") {
		t.Errorf("the example makes the agent complain:\n%s", a.Log)
	}
}

// A bad flag ends the program with 2, and one line names the flag.
func TestBadFlags(t *testing.T) {
	good := testutil.Write(t, "targets: []\n")
	for flag, want := range map[string]string{
		"--no-such-flag":                   "unknown long flag '--no-such-flag'",
		"--log.level=loud":                 "loud",
		"--web.max-requests=0":             "--web.max-requests must be at least 1, is 0",
		"--probe.max-in-flight=-1":         "--probe.max-in-flight must be between 0 and 8000, is -1",
		"--shutdown.delay=-1s":             "--shutdown.delay must not be negative, is -1s",
		"--config.auto-reload-interval=0s": "--config.auto-reload-interval must be greater than 0, is 0s",
		"--web.external-url=::":            "--web.external-url",
		"--health.check=":                  "--health.check needs a URL",
		"--web.listen-address=":            "--web.listen-address and --health.listen-address must not be empty",
		"--web.telemetry-path=/live":       "/live",
		"--web.route-prefix=/ready":        "/ready",
		"--web.external-url=/prefix":       "must be an http or https URL with a host",
	} {
		var log bytes.Buffer
		if code := run(context.Background(), []string{flag, "--log.level=error", "--config.file=" + good}, &log); code != exitUsage || !strings.Contains(log.String(), want) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, %q; want 2 and one line with %q", flag, code, log.String(), want)
		}
	}
}

// A start that cannot succeed ends with exit 1 before anything listens, and says why.
func TestCannotRun(t *testing.T) {
	good := testutil.Write(t, "targets: []\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	brokenWeb := testutil.Write(t, "tls_server_config: {cert_file: /nowhere}\n")
	for what, tt := range map[string]struct {
		args []string
		want string
	}{
		"a missing file":         {[]string{"--config.file=/nowhere/prober.yml"}, "no such file or directory: --config.file names the file"},
		"a pipe":                 {[]string{"--config.file=" + pipe}, "is not a file"},
		"a directory":            {[]string{"--config.file=" + t.TempDir()}, "directory"},
		"a mistake":              {[]string{"--config.file=" + testutil.Write(t, "targets:\n  - name: a\n")}, "prober.yml:2: targets[0]"},
		"a taken address":        {[]string{"--config.file=" + good, "--web.listen-address=" + taken.Addr().String()}, "address already in use"},
		"a taken health address": {[]string{"--config.file=" + good, "--health.listen-address=" + taken.Addr().String()}, "address already in use"},
		"a broken web config":    {[]string{"--config.file=" + good, "--web.config.file=" + brokenWeb}, "key_file"},
		"no sockets by systemd":  {[]string{"--config.file=" + good, "--web.systemd-socket"}, "systemd"},
		"a vsock without port":   {[]string{"--config.file=" + good, "--web.listen-address=vsock://"}, "vsock"},
	} {
		var log bytes.Buffer
		args := tt.args
		if !strings.Contains(strings.Join(args, " "), "--web.listen-address") {
			args = append(args, "--web.listen-address=127.0.0.1:0")
		}
		if code := run(context.Background(), args, &log); code != exitError || !strings.Contains(log.String(), tt.want) || strings.Contains(log.String(), "Listening") {
			t.Errorf("%s: exit %d, want 1 and %q, before anything listens:\n%s", what, code, tt.want, log.String())
		}
	}
}

// badInputs returns files that must hurt nobody, with the agent's words about them.
func badInputs() map[string][2]string {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat("*"+string(c-1)+", ", 9))
	}
	probe := func(s string) string { return "targets:\n  - name: a\n    livenessProbe: {" + s + "}\n" }
	return map[string][2]string{
		"an empty file":           {"", "prober.yml:1"},
		"a binary file":           {"\x7fELF\x00\x01\x02", "prober.yml:1"},
		"10 MB of nonsense":       {strings.Repeat("a: b\n", 2<<20), "prober.yml"},
		"17 MiB":                  {strings.Repeat("#", 17<<20), "16 MiB"},
		"a bomb":                  {bomb + "targets: *j\n", "prober.yml"},
		"a duplicate key":         {"targets: []\ntargets: []\n", "prober.yml:2"},
		"a tab":                   {"targets:\n\t- name: a\n", "prober.yml:2"},
		"an unknown key":          {"targets: []\ncolour: red\n", "prober.yml:2: colour"},
		"a negative number":       {probe("tcpSocket: {port: 1}, periodSeconds: -1"), "must be greater than or equal to 0, is -1"},
		"an absurd number":        {probe("tcpSocket: {port: 1}, periodSeconds: 1e300"), "targets[0].livenessProbe.periodSeconds"},
		"a header with a newline": {probe(`httpGet: {port: 1, httpHeaders: [{name: A, value: "x\ny"}]}`), "httpHeaders[0].value"},
	}
}

// Bad input ends a start with exit 1. A reload refuses bad input and changes nothing. Either
// way the error is clear and has a few lines at most.
func TestBadInput(t *testing.T) {
	app := agenttest.NewApp(t)
	file := testutil.Write(t, "targets:"+app.Target("app"))
	a := start(t, agenttest.Flags(file, "--web.enable-lifecycle")...)
	a.Says(a.Health+"/ready", 200, "ok")
	for what, in := range badInputs() {
		var log bytes.Buffer
		bad := testutil.Write(t, in[0])
		if code := run(context.Background(), agenttest.Flags(bad), &log); code != exitError || !strings.Contains(log.String(), in[1]) || log.Len() > 200<<10 {
			t.Errorf("%s: exit %d, %d bytes of log, want 1 and %q:\n%.500s", what, code, log.Len(), in[1], log.String())
		}
		testutil.Rewrite(t, file, in[0])
		if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != 500 || !strings.Contains(body, in[1]) {
			t.Errorf("%s: a reload answers %d %.500q, want 500 and %q", what, status, body, in[1])
		}
		a.Is(a.Health+"/ready/app", 200, "ok")
	}
}

// --config.check reports every mistake and warning of both files, and starts nothing.
func TestConfigCheck(t *testing.T) {
	boot := "targets:\n  - name: a\n    startupProbe: {tcpSocket: {port: 1}}\n    livenessProbe: {tcpSocket: {port: 1}}\n    instance: {source: static}\n"
	for what, tt := range map[string]struct {
		file, web string
		code      int
		want      []string
	}{
		"good":        {"targets: []\n", "", 0, []string{"0 targets"}},
		"a warning":   {boot, "", 0, []string{"prober.yml:4: targets[0].livenessProbe", "1 targets"}},
		"bad":         {"targets: [{}]\n", "", 1, []string{"prober.yml:1: targets[0]"}},
		"web is bad":  {"targets: []\n", "nonsense: 1\n", 1, []string{"nonsense"}},
		"both are":    {"targets: [{}]\n", "nonsense: 1\n", 1, []string{"targets[0]", "nonsense"}},
		"web is good": {"targets: []\n", "basic_auth_users: {}\n", 0, []string{"0 targets"}},
	} {
		args := []string{"--config.check", "--config.file=" + testutil.Write(t, tt.file)}
		if tt.web != "" {
			args = append(args, "--web.config.file="+testutil.Write(t, tt.web))
		}
		var log bytes.Buffer
		code := run(context.Background(), args, &log)
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(log.String(), want) {
				t.Errorf("%s: exit %d, want %d and %q:\n%s", what, code, tt.code, want, log.String())
			}
		}
	}
}

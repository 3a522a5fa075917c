// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/agent"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// try runs --config.try as the program does.
func try(stdin io.Reader, stdout io.Writer, args ...string) (code int, stderr string) {
	var said bytes.Buffer
	o, code, done := parse(args, &said)
	if !done {
		code = exitCode(agent.Try(context.Background(), o, stdin, stdout, &said))
	}
	return code, said.String()
}

// Each probe of the file makes one attempt, also one that would wait for its delay or for the
// start of its target. The table has aligned columns, and no secret or control character.
func TestTry(t *testing.T) {
	app := agenttest.NewApp(t)
	rude := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "\n \x1b[2J%s\tdone\nsecond line", r.Header.Get("X-Key"))
	}))
	defer rude.Close()
	_, port, _ := net.SplitHostPort(rude.Listener.Addr().String())
	file := testutil.Write(t, fmt.Sprintf(`targets:
  - name: shop
    startupProbe: {tcpSocket: {port: %[1]s}, failureThreshold: 3}
    readinessProbe: {httpGet: {port: %[2]s}, initialDelaySeconds: 3600}
    livenessProbe: {httpGet: {port: %[3]s, httpHeaders: [{name: X-Key, value: hunter2}]}, periodSeconds: 3600}
    restart: {exec: {command: ["false"]}}
  - name: a-name-that-is-long
    readinessProbe: {exec: {command: [/no/such/command]}}
`, testutil.Port(t), app.Port, port))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	var out bytes.Buffer
	code, said := try(nil, &out, "--config.try", "--config.file="+file,
		"--web.listen-address="+taken.Addr().String(), "--health.listen-address="+taken.Addr().String())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if code != exitError || len(lines) != 5 || !strings.HasPrefix(lines[0], "TARGET               PROBE      OUTCOME     REASON               DURATION  OUTPUT") {
		t.Fatalf("exit %d, want 1 and a table of 5 lines:\n%s", code, out.String())
	}
	for _, want := range []string{
		`shop                 startup    failed      connection_refused   +\d\.\d{3} s  .*connection refused`,
		`shop                 readiness  successful                       +\d\.\d{3} s  body`,
		`shop                 liveness   successful                       +\d\.\d{3} s  \\x1b\[2J<redacted> done`,
		`a-name-that-is-long  readiness  unknown     exec_start           +\d\.\d{3} s  start command "/no/such/command": .*`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(out.String()) {
			t.Errorf("no line %s in\n%s", want, out.String())
		}
	}
	if n := app.Asked.Load(); n != 1 {
		t.Errorf("the application got %d requests, want 1", n)
	}
	if !strings.Contains(said, "2 of 4 probes succeeded") || !strings.Contains(said, "warn: ") || strings.Contains(said, "hunter2") {
		t.Errorf("stderr has %q", said)
	}
}

// The exit code is 0 if all attempts have succeeded. A name chooses one target. A name that is not
// in the file is a wrong flag, and a mistake of the file ends the command before any attempt.
func TestTryExits(t *testing.T) {
	app := agenttest.NewApp(t)
	good := testutil.Write(t, "targets:"+app.Target("good")+"  - {name: bad, livenessProbe: {tcpSocket: {port: "+testutil.Port(t)+"}}}\n")
	for _, tt := range []struct {
		flag, file string
		code       int
		lines      int
		said       string
	}{
		{"--config.try", good, exitError, 4, "2 of 3 probes succeeded"},
		{"--config.try=", good, exitError, 4, "2 of 3 probes succeeded"},
		{"--config.try=good", good, exitOK, 3, "2 of 2 probes succeeded"},
		{"--config.try=bad", good, exitError, 2, "0 of 1 probes succeeded"},
		{"--config.try=goo", good, exitUsage, 0, `prober_exporter: error: --config.try: ` + good + ` has no target "goo"`},
		{"--config.try", testutil.Write(t, "targets: []\n"), exitOK, 1, "0 of 0 probes succeeded"},
		{"--config.try", testutil.Write(t, "targets: [{}]\n"), exitError, 0, "prober.yml:1: targets[0]"},
		{"--config.try", "/nowhere/prober.yml", exitError, 0, "no such file or directory: --config.file names the file"},
	} {
		var out bytes.Buffer
		code, said := try(nil, &out, tt.flag, "--config.file="+tt.file)
		if code != tt.code || strings.Count(out.String(), "\n") != tt.lines || !strings.Contains(said, tt.said) {
			t.Errorf("%s of %s: exit %d, want %d; said %q, want %q; want %d lines:\n%s", tt.flag, tt.file, code, tt.code, said, tt.said, tt.lines, out.String())
		}
	}
	for _, args := range [][]string{{"--config.try", "--config.file=-"}, {"--config.file", "-", "--config.try"}} {
		var out bytes.Buffer
		code, said := try(strings.NewReader("targets: [{name: a, readinessProbe: {tcpSocket: {port: "+app.Port+"}}}]\n"), &out, args...)
		if code != exitOK || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("a file from stdin: exit %d, said %q, printed\n%s", code, said, out.String())
		}
	}
	for _, args := range [][]string{{"--config.try", "--config.check"}, {"--config.try", "--health.check=http://127.0.0.1/"}, {"--config.try", "good"}} {
		if code, said := try(nil, io.Discard, append(args, "--config.file="+good)...); code != exitUsage {
			t.Errorf("%q: exit %d, want 2: %s", args, code, said)
		}
	}
	if code, said := try(nil, brokenPipe{}, "--config.try", "--config.file="+good); code != exitError || said != "broken pipe\n" {
		t.Errorf("a stdout that is closed: exit %d, said %q", code, said)
	}
}

// A heartbeat that is posted is skipped. One of a file succeeds if the file is young, although the
// source of the target would have to say when the target has begun.
func TestTryHeartbeats(t *testing.T) {
	young := testutil.Write(t, "beat")
	file := testutil.Write(t, `targets:
  - name: app
    instance: {source: process, match: ^app$}
    readinessProbe: {heartbeat: {file: `+young+`, maxAgeSeconds: 3600}}
    livenessProbe: {heartbeat: {maxAgeSeconds: 3600}}
`)
	var out bytes.Buffer
	code, said := try(nil, &out, "--config.try", "--config.file="+file)
	if code != exitOK || !strings.Contains(said, "1 of 2 probes succeeded, 1 skipped") || !strings.Contains(out.String(), "liveness   skipped ") || !strings.Contains(out.String(), "readiness  successful") {
		t.Errorf("exit %d, said %q, printed\n%s", code, said, out.String())
	}
}

// A line comes when its attempt ends, and not after those that take longer.
func TestTryPrintsAsItGoes(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	_, port, _ := net.SplitHostPort(slow.Listener.Addr().String())
	file := testutil.Write(t, "targets:\n  - name: app\n    readinessProbe: {httpGet: {port: "+port+"}, timeoutSeconds: 60}\n    livenessProbe: {tcpSocket: {port: "+port+"}}\n")
	r, w := io.Pipe()
	ended := make(chan int)
	go func() {
		code, _ := try(nil, w, "--config.try", "--config.file="+file)
		w.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(r)
	var got []string
	for lines.Scan() {
		if got = append(got, strings.Fields(lines.Text())[1]); len(got) == 2 {
			close(release) // only now the first probe can end
		}
	}
	if code := <-ended; code != exitOK || fmt.Sprint(got) != "[PROBE liveness readiness]" {
		t.Errorf("exit %d, lines of %v", code, got)
	}
}

// SIGINT ends the command and the processes that it has started.
func TestTryInterrupted(t *testing.T) {
	began := filepath.Join(t.TempDir(), "pid")
	file := testutil.Write(t, fmt.Sprintf("targets:\n  - name: app\n    livenessProbe: {exec: {command: [sh, -c, 'echo $$$$ > %s.new; mv %[1]s.new %[1]s; sleep 600']}, timeoutSeconds: 600}\n", began))
	cmd := agenttest.Command(t, "--config.try", "--config.file="+file)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	testutil.Eventually(t, "the command runs", func() error {
		data, err := os.ReadFile(began)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err
	})
	begin := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	if code := cmd.ProcessState.ExitCode(); code != exitError || !strings.Contains(said.String(), "stopped after 0 of 1 probes") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("exit %d, printed %q, said %q", code, out.String(), said.String())
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the command of the probe: %v, want no such process", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("ended after %v, want at once", took)
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// built is the directory of the binary; empty if no test has asked for it.
var built string

// binary builds the agent as it is shipped, once: without the race detector, which
// takes ten times the memory and time, and without this package's tests beside it.
var binary = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "prober_exporter"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "prober_exporter")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if plan := os.Getenv(victimEnv); plan != "" {
		victimMain(plan)
	}
	if plan := os.Getenv(floodEnv); plan != "" {
		floodMain(plan)
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// agent is a running agent: run() in this process, or a process of its own.
type agent struct {
	t      *testing.T
	log    *logBuffer
	cancel context.CancelFunc
	cmd    *exec.Cmd
	exit   chan int
	code   int
	ended  bool
	once   sync.Once

	web, health string // base URLs
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// flags are what every agent of these tests is started with.
func flags(file string, more ...string) []string {
	return append([]string{"--config.file=" + file, "--web.listen-address=127.0.0.1:0", "--health.listen-address=127.0.0.1:0"}, more...)
}

// start runs the agent in this process and waits until it serves.
func start(t *testing.T, args ...string) *agent {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &agent{t: t, log: &logBuffer{}, cancel: cancel, exit: make(chan int, 1)}
	go func() { a.exit <- run(ctx, args, a.log) }()
	a.waitUntilServing(args)
	t.Cleanup(func() { a.stop() })
	return a
}

// startProcess runs the agent as a process of its own; shell, if not empty, is what
// goes before it in a shell's command line.
func startProcess(t *testing.T, shell string, args ...string) *agent {
	t.Helper()
	cmd := command(t, args...)
	if shell != "" {
		cmd = exec.Command("sh", append([]string{"-c", shell + `; exec "$0" "$@"`}, cmd.Args...)...)
	}
	a := &agent{t: t, log: &logBuffer{}}
	cmd.Stderr = a.log
	a.begin(cmd)
	a.waitUntilServing(args)
	return a
}

// command returns the agent as a command.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// begin runs the agent as cmd, and ends it with the test.
func (a *agent) begin(cmd *exec.Cmd) {
	a.t.Helper()
	a.cmd, a.exit = cmd, make(chan int, 1)
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.cancel = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	go func() {
		_ = cmd.Wait()
		a.exit <- cmd.ProcessState.ExitCode()
	}()
	a.t.Cleanup(func() { a.stop() })
}

// infoLine is the series that names the instance.
var infoLine = regexp.MustCompile(`prober_target_info\{[^}]*\}`)

// address is a listener's in a line of the log, logfmt or JSON.
var address = regexp.MustCompile(`address"?[=:]"?(127\.0\.0\.1:\d+)`)

// addressIn returns the base URL in the first line of the log with that message.
func (a *agent) addressIn(message string) string {
	for line := range strings.Lines(a.log.String()) {
		if m := address.FindStringSubmatch(line); m != nil && strings.Contains(line, message) {
			return "http://" + m[1]
		}
	}
	return ""
}

func (a *agent) waitUntilServing(args []string) {
	a.t.Helper()
	healthy := strings.Contains(strings.Join(args, " "), "--health.listen-address")
	a.eventually("the agent serves", func() error {
		select {
		case code := <-a.exit:
			a.t.Fatalf("exit %d instead of serving:\n%s", code, a.log)
		default:
		}
		a.web, a.health = a.addressIn("Listening on"), a.addressIn("serving the health endpoints")
		if a.web == "" || healthy && a.health == "" {
			return fmt.Errorf("no address in the log:\n%s", a.log)
		}
		return nil
	})
}

// stop ends the agent and returns its exit code.
func (a *agent) stop() int {
	a.t.Helper()
	a.once.Do(func() {
		a.cancel()
		a.code = a.wait()
	})
	return a.code
}

// wait returns the exit code once the agent has ended by itself.
func (a *agent) wait() int {
	a.t.Helper()
	if a.ended {
		return a.code
	}
	select {
	case a.code = <-a.exit:
		a.ended = true
		return a.code
	case <-time.After(20 * time.Second):
		a.t.Fatalf("the agent does not end:\n%s", a.log)
		return -1
	}
}

// eventually waits until check returns nil.
func (a *agent) eventually(what string, check func() error) {
	a.t.Helper()
	eventually(a.t, what, check)
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("%s: not within 15 s: %v", what, err)
		}
	}
}

// write writes a configuration file and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prober.yml")
	rewrite(t, path, content)
	return path
}

func rewrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// app is a real server to be probed: its paths answer 200 until told otherwise.
type app struct {
	*httptest.Server
	port    string
	broken  atomic.Bool
	asked   atomic.Int64
	headers sync.Map // the last headers by path
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked.Add(1)
		a.headers.Store(r.URL.Path, r.Header)
		if a.broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, "body")
	}))
	t.Cleanup(a.Close)
	_, a.port, _ = net.SplitHostPort(a.Listener.Addr().String())
	return a
}

// target is a target with a readiness and a liveness probe of the app, ten times a second.
func (a *app) target(name string, more ...string) string {
	return fmt.Sprintf(`
  - name: %s
    readinessProbe: {httpGet: {port: %s, path: /ready}, periodSeconds: 0.1, failureThreshold: 1}
    livenessProbe: {httpGet: {port: %s, path: /live}, periodSeconds: 0.1, failureThreshold: 2}
%s`, name, a.port, a.port, strings.Join(more, "\n"))
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
	"github.com/prober-exporter/prober_exporter/prober"
)

// systemd is the socket on which systemd listens to its services.
type systemd struct {
	t *testing.T
	*net.UnixConn
}

// listenAsSystemd makes the agents of this test tell a socket about themselves.
func listenAsSystemd(t *testing.T) systemd {
	t.Helper()
	address := net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")}
	conn, err := net.ListenUnixgram("unixgram", &address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv(notifySocket, address.Name)
	t.Setenv("WATCHDOG_USEC", "")
	t.Setenv("WATCHDOG_PID", "")
	return systemd{t, conn}
}

// next returns the next message.
func (s systemd) next() string {
	s.t.Helper()
	buf := make([]byte, 4096)
	_ = s.SetReadDeadline(time.Now().Add(30 * time.Second))
	n, err := s.Read(buf)
	if err != nil {
		s.t.Fatalf("no message: %v", err)
	}
	return string(buf[:n])
}

// heard returns all messages that are there.
func (s systemd) heard() (messages []string) {
	s.t.Helper()
	raw, err := s.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	_ = raw.Read(func(fd uintptr) bool {
		for buf := make([]byte, 4096); ; {
			n, _, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			if err != nil {
				return true
			}
			messages = append(messages, string(buf[:n]))
		}
	})
	return messages
}

// hears fails the test unless the next message begins so. Messages of the status do not count,
// unless one is wanted.
func (s systemd) hears(want string) (message string) {
	s.t.Helper()
	for message = s.next(); !strings.HasPrefix(message, want); message = s.next() {
		if !strings.HasPrefix(message, "STATUS=") {
			s.t.Fatalf("%q, want %q", message, want)
		}
	}
	return message
}

// reloads fails the test unless a reload begins after a moment, and ends.
func (s systemd) reloads(after int64) {
	s.t.Helper()
	begin := strings.Split(s.hears("RELOADING=1\n"), "\n")
	at, err := strconv.ParseInt(strings.TrimPrefix(begin[1], "MONOTONIC_USEC="), 10, 64)
	if now := monotonic(s.t); err != nil || at < after || at > now {
		s.t.Errorf("the reload began at %q (%v), which is not between %d and %d", begin[1], err, after, now)
	}
	if message := s.hears("READY=1"); message != "READY=1" {
		s.t.Errorf("%q at the end of a reload", message)
	}
}

// monotonic is systemd's clock, in microseconds.
func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano() / 1000
}

// systemd hears when the agent serves, what the page says, when a reload begins and ends, and
// when the agent stops; after that it hears nothing.
func TestNotify(t *testing.T) {
	s := listenAsSystemd(t)
	app := agenttest.NewApp(t)
	static := "    instance: {source: static}" // nothing is held
	file := testutil.Write(t, "targets:"+app.Target("one", static))
	a := start(t, file, withRequests)
	if !strings.HasSuffix(s.hears("READY=1\nSTATUS="), "The target is ready") {
		s.hears("STATUS=The target is ready")
	}
	app.Broken.Store(true)
	s.hears("STATUS=The target is neither ready nor live")
	app.Broken.Store(false)
	s.hears("STATUS=The target is ready")

	before := monotonic(t)
	testutil.Rewrite(t, file, "targets:"+app.Target("one", static)+app.Target("two", static))
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.reloads(before)
	s.hears("STATUS=All 2 targets ready")
	before = monotonic(t)
	testutil.Rewrite(t, file, "targets: 7")
	testutil.Do(t, "POST", a.Web+"/-/reload") // refused
	s.reloads(before)

	a.Stop()
	s.hears("STOPPING=1")
	if messages := s.heard(); messages != nil {
		t.Errorf("%q after the end", messages)
	}
}

// An agent that may run without a configuration is ready when it serves; another is not.
func TestNotifyWithoutConfiguration(t *testing.T) {
	s := listenAsSystemd(t)
	missing := filepath.Join(t.TempDir(), "nosuch.yml")
	if code := runWith(t.Context(), options(missing), new(testutil.Log)); code != 1 {
		t.Fatalf("the agent ends with %d", code)
	}
	if messages := s.heard(); messages != nil {
		t.Errorf("%q from an agent that cannot run", messages)
	}
	t.Setenv(notifySocket, s.LocalAddr().String())
	a := start(t, missing, failOpen, retrySoon)
	if message := s.hears("READY=1"); message != "READY=1\nSTATUS=No configuration" {
		t.Errorf("%q from an agent that serves", message)
	}
	before := monotonic(t)
	testutil.Rewrite(t, missing, "targets: []")
	s.reloads(before)
	s.hears("STATUS=Nothing to probe")
	a.Stop()
	s.hears("STOPPING=1")
}

// The watchdog gets a sign of life twice in its time, as long as the agent is healthy.
func TestNotifyWatchdog(t *testing.T) {
	s := listenAsSystemd(t)
	t.Setenv("WATCHDOG_USEC", "40000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	n := newNotifier(slog.New(slog.DiscardHandler))
	defer n.close()
	if want := 40 * time.Millisecond; n.watchdog != want {
		t.Fatalf("the watchdog waits for %v, want %v", n.watchdog, want)
	}
	m := prober.New(prober.Options{})
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	asked, began := 0, time.Now()
	n.run(ctx, m, func() bool {
		if asked++; asked == 6 {
			cancel()
		}
		return asked%3 != 0
	})
	if took := time.Since(began); took < 6*20*time.Millisecond {
		t.Errorf("six signs within %v", took)
	}
	if got, want := strings.Join(s.heard(), " "), "READY=1\nSTATUS=No configuration"+strings.Repeat(" WATCHDOG=1", 4); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An agent that nobody listens to tells nobody, and says why it cannot.
func TestNotifyNobody(t *testing.T) {
	t.Setenv(notifySocket, "")
	t.Setenv("WATCHDOG_USEC", "1000")
	var log testutil.Log
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if n := newNotifier(logger); n != nil || log.String() != "" {
		t.Errorf("without a socket: %v, and the log %q", n, log.String())
	}
	if got, set := os.LookupEnv("WATCHDOG_USEC"); set {
		t.Errorf("the environment still has a watchdog: %q", got)
	}
	t.Setenv(notifySocket, filepath.Join(t.TempDir(), "nosuch"))
	if n := newNotifier(logger); n != nil || log.Count("systemd is told nothing about the agent") != 1 {
		t.Errorf("with a socket that is not there: %v, and the log %q", n, log.String())
	}
	s := listenAsSystemd(t)
	t.Setenv("WATCHDOG_USEC", "7 days")
	n := newNotifier(logger)
	defer n.close()
	if n.watchdog != 0 || log.Count("systemd's watchdog gets no sign of life") != 1 {
		t.Errorf("with a watchdog that is no number: %v, and the log %q", n.watchdog, log.String())
	}
	// The socket takes a bounded number of messages. More are lost, and the log says so once.
	for log.Count("cannot tell systemd about the agent") == 0 {
		n.send("STATUS=" + strings.Repeat("x", 2000))
	}
	_ = s.Close()
	n.send("STATUS=nobody")
	if told := log.Count("cannot tell systemd about the agent"); told != 1 {
		t.Errorf("the log tells %d times of messages that are lost", told)
	}
}

// Exec probes cannot speak for the agent: they do not see whom to speak to.
func TestNotifyNoProbe(t *testing.T) {
	s := listenAsSystemd(t)
	t.Setenv("WATCHDOG_USEC", "60000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	seen := filepath.Join(t.TempDir(), "seen")
	a := start(t, testutil.Write(t, `targets:
  - name: env
    instance: {source: static}
    readinessProbe: {exec: {command: [/bin/sh, -c, 'env >`+seen+`']}}
`))
	s.hears("READY=1")
	a.Says(a.Health+"/ready", 200, "ok")
	env, err := os.ReadFile(seen)
	if err != nil || !bytes.Contains(env, []byte("PATH=")) {
		t.Fatalf("the environment of a probe is %q, %v", env, err)
	}
	for _, name := range []string{notifySocket, "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if bytes.Contains(env, []byte(name)) {
			t.Errorf("the environment of a probe has %s", name)
		}
	}
}

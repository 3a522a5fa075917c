// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/action"
	"github.com/prober-exporter/prober_exporter/prober/action/actiontest"
)

// socketProbes returns a probe of each action for a Unix socket.
func socketProbes(path string, timeout time.Duration) map[string]action.Func {
	host := "unix://" + path
	return map[string]action.Func{
		"httpGet":   httpProbe(host, timeout, config.HTTPGet{Path: "/"}),
		"HTTPS":     httpProbe(host, timeout, config.HTTPGet{Path: "/", Scheme: "HTTPS"}),
		"HTTP2":     httpProbe(host, timeout, config.HTTPGet{Path: "/", Protocol: "HTTP2"}),
		"tcpSocket": tcpProbe(host, timeout),
		"grpc":      grpcProbe(host, timeout, "", ""),
		"grpc, TLS": grpcProbe(host, timeout, "", "TLS"),
	}
}

// Each action reaches a server on a Unix socket.
func TestSocketAnswers(t *testing.T) {
	site := func(encrypted bool, set func(*http.Protocols, bool)) string {
		l := actiontest.ListenUnix(t, actiontest.Socket(t))
		actiontest.WebServerOn(t, l, actiontest.Site(), actiontest.Protocols(set), encrypted)
		return l.Addr().String()
	}
	rpc := func(encrypted bool) string {
		l := actiontest.ListenUnix(t, actiontest.Socket(t))
		actiontest.RPCOn(t, l, encrypted, true)
		return l.Addr().String()
	}
	for name, path := range map[string]string{
		"httpGet":   site(false, (*http.Protocols).SetHTTP1),
		"HTTPS":     site(true, (*http.Protocols).SetHTTP2),
		"HTTP2":     site(false, (*http.Protocols).SetUnencryptedHTTP2),
		"tcpSocket": site(false, (*http.Protocols).SetHTTP1),
		"grpc":      rpc(false),
		"grpc, TLS": rpc(true),
	} {
		if got := actiontest.Attempt(t, socketProbes(path, 10*time.Second)[name]); !got.Success {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A Unix socket without a file, without a listener or below a directory that does not exist is
// refused. So are a file that is no socket, and a socket that takes datagrams.
func TestSocketRefused(t *testing.T) {
	missing := actiontest.Socket(t)
	dead := actiontest.Socket(t)
	l := actiontest.ListenUnix(t, dead)
	l.SetUnlinkOnClose(false)
	l.Close()
	file := actiontest.Socket(t)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	letters, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: actiontest.Socket(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer letters.Close()
	for about, path := range map[string]string{
		"datagrams": letters.LocalAddr().String(),
		"no file":   missing, "nobody listens": dead, "no socket": file, "no directory": missing + "/x", "a file for a directory": file + "/x",
	} {
		for name, f := range socketProbes(path, 50*time.Millisecond) {
			if got := actiontest.Attempt(t, f); got.Success || got.Reason != action.ConnectionRefused {
				t.Errorf("%s, %s: got %+v", about, name, got)
			}
		}
	}
}

// While the backlog of a Unix socket is full, an attempt waits for its whole timeout. Then it has
// failed for want of time, with the texts of a TCP connection that is not accepted, and leaves no
// descriptor.
func TestSocketCrowded(t *testing.T) {
	path, _ := actiontest.Crowded(t)
	before := actiontest.Descriptors(t)
	const timeout = 100 * time.Millisecond
	for name, f := range socketProbes(path, timeout) {
		began := time.Now()
		got := actiontest.Attempt(t, f)
		if took := time.Since(began); took < timeout || got.Success || got.Reason != action.Timeout {
			t.Errorf("%s: got %+v after %v", name, got, took)
		}
		want := map[string]string{
			"httpGet":   `Get "http://localhost/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
			"tcpSocket": "dial unix " + path + ": i/o timeout",
			"grpc":      `timeout: failed to connect service "unix://` + path + `" within 100ms: context deadline exceeded`,
		}[name]
		if want != "" && got.Output != want {
			t.Errorf("%s: got %q, want %q", name, got.Output, want)
		}
		if after := actiontest.Descriptors(t); after > before {
			t.Errorf("%s: %d descriptors after, %d before", name, after, before)
		}
	}
}

// socketHelperEnv makes TestSocketHelper a helper of another test.
const socketHelperEnv = "PROBER_TEST_SOCKET"

// A Unix socket that the agent may not connect to, or not find for want of rights, says nothing about
// the target: the outcome is unknown, with the reason local_file.
func TestSocketDenied(t *testing.T) {
	needs.Root(t)
	closed := actiontest.ListenUnix(t, actiontest.Socket(t)).Addr().String()
	hidden := actiontest.ListenUnix(t, actiontest.Socket(t)).Addr().String()
	if err := errors.Join(os.Chmod(closed, 0o600), os.Chmod(filepath.Dir(hidden), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{closed, hidden} {
		helper := exec.Command(os.Args[0], "-test.run=^TestSocketHelper$", "-test.v")
		helper.Env = append(os.Environ(), socketHelperEnv+"="+path)
		out, err := helper.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "PASS: TestSocketHelper") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// This is no test of its own: it is what TestSocketDenied does as nobody.
func TestSocketHelper(t *testing.T) {
	path := os.Getenv(socketHelperEnv)
	if path == "" {
		return
	}
	const nobody = 65534
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	for name, f := range socketProbes(path, 50*time.Millisecond) {
		got, err := actiontest.Tried(t, f)
		if got.Reason != action.LocalFile || !errors.Is(err, unix.EACCES) {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		}
	}
}

// When a server removes its Unix socket and binds another one there, the next attempt reaches the
// new one. In between, attempts fail.
func TestSocketReplaced(t *testing.T) {
	path := actiontest.Socket(t)
	probe := httpProbe("unix://"+path, 10*time.Second, config.HTTPGet{Path: "/"})
	for range 3 {
		l := actiontest.ListenUnix(t, path)
		s := actiontest.WebServerOn(t, l, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1), false)
		if got := actiontest.Attempt(t, probe); !got.Success {
			t.Errorf("got %+v", got)
		}
		s.Close()
		if got := actiontest.Attempt(t, probe); got.Reason != action.ConnectionRefused {
			t.Errorf("got %+v", got)
		}
	}
}

// An attempt over a Unix socket has one file open.
func TestSocketFiles(t *testing.T) {
	target := &config.Target{Host: "unix:///run/a.sock"}
	for _, p := range []*config.Probe{{HTTPGet: &config.HTTPGet{}}, {TCPSocket: &config.TCPSocket{}}, {GRPC: &config.GRPC{}}} {
		if got := filesOf(target, p); got != 1 {
			t.Errorf("%s: %d files", p.Action(), got)
		}
	}
}

// Attempts over Unix sockets leave no descriptor and no goroutine behind, however they end.
func TestSocketLeavesNothing(t *testing.T) {
	web := actiontest.ListenUnix(t, actiontest.Socket(t))
	actiontest.WebServerOn(t, web, actiontest.Site(), actiontest.Protocols((*http.Protocols).SetHTTP1), false)
	mute := actiontest.ListenUnix(t, actiontest.Socket(t))
	actiontest.RawOn(t, mute, actiontest.Mute)
	crowded, _ := actiontest.Crowded(t)
	round := func() {
		for _, path := range []string{web.Addr().String(), mute.Addr().String(), crowded, crowded + "x"} {
			for _, f := range socketProbes(path, 20*time.Millisecond) {
				_, _ = f(t.Context())
			}
		}
	}
	round() // what is made once stays
	before := actiontest.Descriptors(t)
	for range 3 {
		round()
	}
	testutil.Until(t, "all descriptors are closed", func() bool { return actiontest.Descriptors(t) <= before })
}

// A target behind a Unix socket needs no port anywhere: its probes succeed, its restart is a new
// instance, and nothing is said of a target that nobody serves but that it does not run.
func TestSocketTarget(t *testing.T) {
	path := actiontest.Socket(t)
	cfg, _, err := config.Load("prober.yml", []byte(`targets:
  - name: app
    host: unix://`+path+`
    startupProbe: {httpGet: {path: "/code?c=204"}, periodSeconds: 0.05}
    readinessProbe: {tcpSocket: {}, periodSeconds: 0.05, failureThreshold: 1}
    livenessProbe: {httpGet: {path: /h, expect: {bodyMatches: "^GET"}}, periodSeconds: 0.05, failureThreshold: 1}
`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{Logger: slog.New(slog.DiscardHandler)})
	defer m.Close()
	crash := actiontest.UnixSite(t, path)
	if err := m.Apply(cfg); err != nil {
		t.Fatal(err)
	}
	is := func() TargetStatus {
		s, _ := m.Target("app", Brief)
		return s
	}
	testutil.Until(t, "the target is ready", func() bool { return is().Ready && is().Live })
	first := is().Instance.ID
	crash()
	testutil.Until(t, "the target has ended", func() bool { return !is().Running })
	if s := is(); s.Started || s.Ready || !s.Live {
		t.Errorf("ended: %+v", s)
	}
	actiontest.UnixSite(t, path)
	testutil.Until(t, "the target is ready again", func() bool { return is().Ready })
	if s := is(); s.Instance.ID == first || s.Restarts != 1 || !s.Live || s.Source != config.SourceListener {
		t.Errorf("restarted: %+v, before: %s", s, first)
	}
}

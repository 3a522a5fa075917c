// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// hook runs the preStop hook with the flags of an agent, in this process.
func hook(t *testing.T, args ...string) string {
	t.Helper()
	var said logBuffer
	if code := run(context.Background(), append([]string{"--terminating"}, args...), &said); code != exitOK {
		t.Errorf("%q: exit %d, said %q", args, code, said.String())
	}
	return said.String()
}

// The hook ends liveness and startup for good, on the health listener or on the web
// listener: reloads, of the same targets and of others, bring neither back. Readiness goes
// on. The agent says so once in its log.
func TestTerminating(t *testing.T) {
	for _, listener := range []string{"health", "web"} {
		app, other := newApp(t), newApp(t)
		file := write(t, "targets:"+app.target("app"))
		a := start(t, flags(file, "--web.enable-lifecycle")...)
		a.says(a.health+"/ready", 200, "ok")
		app.broken.Store(true)
		a.says(a.health+"/live/app", 503, "[-]app failed: liveness: http_status (2/2)")
		address := strings.TrimPrefix(map[string]string{"health": a.health, "web": a.web}[listener], "http://")
		for range 2 {
			if said := hook(t, "--"+listener+".listen-address="+address); !strings.Contains(said, address+" has ended its startup and liveness probes") {
				t.Errorf("said %q", said)
			}
		}
		a.is(a.health+"/live/app", 200, "[?] pod terminating")
		a.is(a.health+"/ready/app", 503, "[-]app failed: readiness: http_status")
		app.broken.Store(false)
		a.says(a.health+"/ready", 200, "ok")
		rewrite(t, file, "targets:"+app.target("app", "    labels: {now: other}")+other.target("other"))
		if status, body := do(t, http.MethodPost, a.web+"/-/reload"); status != 200 {
			t.Fatalf("reload: %d %s", status, body)
		}
		a.says(a.health+"/ready", 200, "ok")
		for _, series := range []string{`now="other",probe_type="Liveness",result="successful",target="app"`, `probe_type="Liveness",result="successful",target="other"`} {
			if got := metric(t, a, "prober_probe_total{"+series+"}"); got != "0" {
				t.Errorf("%s is %q after the reload, want 0", series, got)
			}
		}
		if n := strings.Count(a.log.String(), "pod terminating"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, a.log)
		}
		a.stop()
	}
}

// Whatever the hook meets, it exits with 0 within a moment, and says what it met: nobody,
// somebody who never answers, an agent that is asked at another address than loopback, a
// listener with TLS.
func TestTerminatingInVain(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn)
	encrypted.StartTLS()
	defer encrypted.Close()
	for address, want := range map[string]string{
		silent.Addr().String():             "deadline exceeded",
		"127.0.0.1:" + testutil.Port(t):    "refused",
		encrypted.Listener.Addr().String(): "answers 400",
		"vsock://:9708":                    "vsock",
	} {
		begin := time.Now()
		if said := hook(t, "--health.listen-address="+address); !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: said %q, want one line with %q", address, said, want)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v, want %v", address, took, tellTime)
		}
	}
}

// An agent that is asked at the pod's address, as another pod would ask it, goes on.
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
		a := start(t, flags(write(t, "targets: []\n"), "--health.listen-address="+free.Addr().String())...)
		if said := hook(t, "--health.listen-address="+free.Addr().String()); !strings.Contains(said, "answers 403 Forbidden: Only a command beside the agent") {
			t.Errorf("from %v: said %q", ip, said)
		}
		a.is(a.health+"/live?verbose", 200, "live check passed")
		return
	}
	needs.Missing(t, "an address beside those of loopback")
}

// The hook asks where it is told that the agent listens, and nobody else; else where
// agents usually are.
func TestAgentAddresses(t *testing.T) {
	for args, want := range map[string][]string{
		"":                              {"127.0.0.1:9708", "127.0.0.1:9709"},
		"--health.listen-address=:9718": {"127.0.0.1:9718"},
		"--health.listen-address=[::]:1 --health.listen-address=192.0.2.1:2": {"127.0.0.1:1", "192.0.2.1:2"},
		"--web.listen-address=0.0.0.0:9719":                                  {"127.0.0.1:9719"},
		"--web.listen-address=[::1]:9719":                                    {"[::1]:9719"},
		"--web.listen-address=:9719 --health.listen-address=127.0.0.1:9718":  {"127.0.0.1:9718"},
	} {
		o, _, done := parse(append([]string{"--terminating"}, strings.Fields(args)...), os.Stderr)
		if done {
			t.Fatalf("%s: wrong flags", args)
		}
		if got := o.agentAddresses(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// silentResolver starts a DNS server that answers no question. It returns shell commands that
// make this server the resolver of the commands after them.
func silentResolver(t *testing.T) (shell string) {
	t.Helper()
	var server net.PacketConn
	var address string
	var err error
	for range 10 { // another test may have the address, or another run of this test
		address = fmt.Sprintf("127.%d.%d.1", 1+rand.IntN(254), rand.IntN(255))
		if server, err = net.ListenPacket("udp", net.JoinHostPort(address, "53")); err == nil {
			break
		}
	}
	if err != nil {
		needs.Missing(t, fmt.Errorf("a DNS server: %w", err))
	}
	t.Cleanup(func() { server.Close() })
	needs.Root(t)
	file := filepath.Join(t.TempDir(), "resolv.conf")
	testutil.Rewrite(t, file, "nameserver "+address+"\n")
	return `exec unshare -m sh -c 'mount --bind "` + file + `" /etc/resolv.conf && exec "$0" "$@"' "$0" "$@"`
}

// sum adds up the series of a metric whose labels contain all of these words.
func sum(t *testing.T, a *agenttest.Agent, name string, words ...string) (total int) {
	t.Helper()
	_, body := testutil.Get(t, a.Web+"/metrics")
	for line := range strings.Lines(body) {
		rest, found := strings.CutPrefix(line, name+"{")
		labels, value, _ := strings.Cut(rest, "} ")
		for _, w := range words {
			found = found && strings.Contains(labels, w)
		}
		if !found {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		total += n
	}
	return total
}

// files returns how many files the agent's process has open.
func files(t *testing.T, a *agenttest.Agent) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// While DNS is silent, 150 targets with names do not disturb other targets, with a limit of
// 1,024 open files. A kubelet with a timeout of a second gets 30 of 30 answers, the agent drops
// no attempt at targets with addresses, and look-ups end with their attempts.
func TestDNSOutage(t *testing.T) {
	const named, local, asked = 150, 10, 30
	shell := silentResolver(t)
	app := agenttest.NewApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range named {
		fmt.Fprintf(&b, "  - {name: n%d, host: n%d.example.test, livenessProbe: {httpGet: {port: 80}, periodSeconds: 1, failureThreshold: 1}}\n", i, i)
	}
	for i := range local {
		fmt.Fprintf(&b, "  - {name: g%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 1, failureThreshold: 1}}\n", i, app.Port)
	}
	a := agenttest.StartProcess(t, "ulimit -n 1024; "+shell, agenttest.Flags(testutil.Write(t, b.String()))...)
	a.Eventually("every look-up has failed, three times on average", func() error {
		if n := sum(t, a, "prober_probe_failures_total", `target="n`, `reason="timeout"`); n < 3*named {
			return fmt.Errorf("%d failures", n)
		}
		return nil
	})
	open := 0
	well, _ := kubeletAsks(t, a.Health+"/live/g0", asked, func() { open = max(open, files(t, a)) })
	unknown := sum(t, a, "prober_probe_total", `target="g`, `result="unknown"`)
	t.Logf("%d of %d answers, %d files open at most, %d attempts at local targets dropped", well, asked, open, unknown)
	if well != asked {
		t.Errorf("%d of %d answers, want all", well, asked)
	}
	if unknown != 0 {
		t.Errorf("%d attempts at healthy targets came to nothing, want none", unknown)
	}
	// Each look-up in progress needs two sockets, and the agent needs some files anyway.
	if most := 2*named + 100; open > most {
		t.Errorf("%d files open, want %d at most", open, most)
	}
}

// witness is an application that records when each of its paths was asked.
type witness struct {
	port   string
	locked atomic.Bool // /sick gets no answers any more

	mu    sync.Mutex
	asked map[string][]time.Time
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{asked: map[string][]time.Time{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked[r.URL.Path] = append(w.asked[r.URL.Path], time.Now())
		w.mu.Unlock()
		if r.URL.Path == "/sick" && w.locked.Load() {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	_, w.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return w
}

// paths returns how many paths have been asked so far.
func (w *witness) paths() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// since returns how often all paths were asked between begin and end, and the longest time in
// which some path was not asked.
func (w *witness) since(begin, end time.Time) (asked int, gap time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.asked {
		last := begin
		for _, at := range times {
			if at.Before(begin) || at.After(end) {
				continue
			}
			asked++
			gap, last = max(gap, at.Sub(last)), at
		}
		gap = max(gap, end.Sub(last))
	}
	return asked, gap
}

// With 1,024 open files, 600 targets that hang take no turn from 20 targets that answer. The
// agent asks the 20 targets every second, and a target that begins to hang fails within its
// timeout and a period.
func TestHangingTargets(t *testing.T) {
	const hanging, healthy, seconds = 600, 20, 8
	port := hostile(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	app := newWitness(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range hanging {
		fmt.Fprintf(&b, "  - {name: h%d, instance: {source: static}, livenessProbe: {httpGet: {port: %s}, periodSeconds: 1, timeoutSeconds: 2}}\n", i, port)
	}
	for i := range healthy {
		fmt.Fprintf(&b, "  - {name: g%d, instance: {source: static}, livenessProbe: {httpGet: {path: /g%d, port: %s}, periodSeconds: 1, failureThreshold: 1}}\n", i, i, app.port)
	}
	fmt.Fprintf(&b, "  - {name: sick, instance: {source: static}, livenessProbe: {httpGet: {path: /sick, port: %s}, periodSeconds: 1, failureThreshold: 1}}\n", app.port)
	a := agenttest.StartProcess(t, "ulimit -n 1024", agenttest.Flags(testutil.Write(t, b.String()))...)
	a.Eventually("the agent has asked each target that answers, and hanging targets have timed out", func() error {
		if n, late := app.paths(), sum(t, a, "prober_probe_failures_total", `target="h`, `reason="timeout"`); n <= healthy || late < hanging/2 {
			return fmt.Errorf("%d paths asked, %d timeouts", n, late)
		}
		return nil
	})

	begin := time.Now()
	testutil.Wait(t, seconds*time.Second)
	asked, gap := app.since(begin, time.Now())
	app.locked.Store(true)
	locked := time.Now()
	a.Says(a.Health+"/live/sick", 503, "sick failed")
	seen := time.Since(locked)
	due := (healthy + 1) * seconds
	t.Logf("%d of %d attempts at healthy targets, at most %v between two; the agent saw the target that hangs after %v", asked, due, gap, seen)
	if asked < due*9/10 {
		t.Errorf("%d of %d attempts at healthy targets, want nine tenths at least", asked, due)
	}
	if most := 2500 * time.Millisecond; gap > most {
		t.Errorf("%v without an attempt at a healthy target, want %v at most", gap, most)
	}
	if most := 4 * time.Second; seen > most {
		t.Errorf("the agent saw a target that hangs after %v, want %v at most", seen, most)
	}
	a.Is(a.Health+"/live/g0", 200, "ok")
	if late := sum(t, a, "prober_probe_total", `target="h`, `result="unknown"`); late != 0 {
		t.Errorf("the agent dropped %d attempts at hanging targets, want none", late)
	}
}

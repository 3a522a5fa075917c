// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// The agent probes a thousand targets while a hundred reloads change another tenth of them each
// time. What ready and live say never changes, no counter of an unchanged target goes back, and
// no goroutine and no file is left behind.
func TestReloadUnderLoad(t *testing.T) {
	app := agenttest.NewApp(t)
	goroutines, files := runtime.NumGoroutine(), testutil.Descriptors(t)
	const targets, reloads = 1000, 100
	config := func(n int) string {
		var b strings.Builder
		b.WriteString("targets:\n")
		for i := range targets {
			timeout := 5
			if i%10 != 0 && i%10 == n%10 {
				timeout = 5 + n
			}
			fmt.Fprintf(&b, "  - {name: t%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 5, timeoutSeconds: %d}}\n", i, app.Port, timeout)
		}
		return b.String()
	}
	file := testutil.Write(t, config(0))
	a := start(t, file, withRequests)
	a.Says(a.Health+"/ready", 200, "ok")

	counted := func() uint64 {
		series := a.Metric(`prober_probe_total{probe_type="Liveness",result="successful",target="t0"}`)
		n, err := strconv.ParseUint(series, 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	a.Eventually("the agent probes t0", func() error {
		if counted() == 0 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	done := make(chan struct{})
	var watch sync.WaitGroup
	for _, path := range []string{"/ready", "/live"} {
		watch.Go(func() {
			poll := time.NewTicker(2 * time.Millisecond)
			defer poll.Stop()
			for {
				select {
				case <-done:
					return
				case <-poll.C:
					// On a starved machine, a request may take longer than
					// the agent allows.
					if status, body := testutil.Get(t, a.Health+path); status != 200 && status != 0 {
						t.Errorf("%s answers %d %q during a reload", path, status, body)
						return
					}
				}
			}
		})
	}
	before := counted()
	for n := range reloads {
		testutil.Rewrite(t, file, config(n+1))
		if status, body := testutil.Do(t, http.MethodPost, a.Web+"/-/reload"); status != 200 {
			t.Fatalf("reload %d: %d %s", n, status, body)
		}
		if n%10 == 0 {
			if now := counted(); now < before {
				t.Errorf("reload %d: the counter of an unchanged target went from %d to %d", n, before, now)
			} else {
				before = now
			}
		}
	}
	close(done)
	watch.Wait()
	if code := a.Stop(); code != 0 {
		t.Errorf("exit %d:\n%s", code, a.Log)
	}
	testutil.Eventually(t, "goroutines and files are as before", func() error {
		if g, f := runtime.NumGoroutine(), testutil.Descriptors(t); g > goroutines+2 || f > files+2 {
			return fmt.Errorf("%d goroutines and %d files, %d and %d before", g, f, goroutines, files)
		}
		return nil
	})
}

// A thousand targets hang, reset, or send garbage, endless headers or endless bodies. They cost
// the agent less than 100 MB, and 99 in 100 of all turns begin within 50 ms of their time.
func TestHostileTargets(t *testing.T) {
	request := func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }
	flood := func(c net.Conn, head string) {
		_ = c.(*net.TCPConn).SetWriteBuffer(32 << 10) // data sent ahead only costs CPU time
		request(c)
		_, _ = io.WriteString(c, head)
		junk := []byte(strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 8))
		for {
			if _, err := c.Write(junk); err != nil {
				return
			}
		}
	}
	ports := []string{
		hostile(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		hostile(t, func(c net.Conn) { request(c); _ = c.(*net.TCPConn).SetLinger(0) }),
		hostile(t, func(c net.Conn) { request(c); _, _ = io.WriteString(c, strings.Repeat("\x00\xff garbage\n", 100)) }),
		hostile(t, func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\n") }),
		hostile(t, func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\n\r\n") }),
	}
	app := agenttest.NewApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - {name: bad%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 5}}\n", i, ports[i%len(ports)])
	}
	for i := range 20 {
		fmt.Fprintf(&b, "  - {name: good%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 1}}\n", i, app.Port)
	}
	a := agenttest.StartProcess(t, "", agenttest.Flags(testutil.Write(t, b.String()))...)
	rss := func() float64 { return memory(t, a, "VmRSS:") }
	begin := rss()
	// Other tests may take the machine for a moment: one quiet window of five seconds out
	// of several is enough.
	var within, all float64
	eventuallyQuiet := false
	for range 6 {
		before50, beforeAll := lateness(t, a, "0.05"), lateness(t, a, "+Inf")
		testutil.Wait(t, 5*time.Second)
		within, all = lateness(t, a, "0.05")-before50, lateness(t, a, "+Inf")-beforeAll
		if eventuallyQuiet = all > 200 && within >= 0.99*all; eventuallyQuiet {
			break
		}
	}
	if !eventuallyQuiet {
		t.Errorf("of the last %v turns, %v began within 50 ms; want 99 %%", all, within)
	}
	if grown := rss() - begin; grown > 100 {
		t.Errorf("the hostile targets cost %.1f MB, want 100 at most", grown)
	}
	for i := range 20 {
		a.Is(fmt.Sprintf("%s/live/good%d", a.Health, i), 200, "ok")
	}
	for _, reason := range []string{"timeout", "connection_reset", "http_protocol"} {
		if _, body := testutil.Get(t, a.Web+"/metrics"); !strings.Contains(body, `reason="`+reason+`"`) {
			t.Errorf("no target failed for %s", reason)
		}
	}
}

// lateness returns a cumulative bucket of the lateness histogram.
func lateness(t *testing.T, a *agenttest.Agent, le string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(a.Metric(`prober_exporter_probe_lateness_seconds_bucket{le="`+le+`"}`), 64)
	if err != nil {
		t.Fatalf("lateness: %v", err)
	}
	return n
}

// A hundred clients hardly read their scrapes. Clients beyond --web.max-requests get 503, the
// health listener answers, and turns begin in time.
func TestSlowScrapes(t *testing.T) {
	app := agenttest.NewApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "  - {name: idle%d, readinessProbe: {tcpSocket: {port: %s}, periodSeconds: 3600}, livenessProbe: {tcpSocket: {port: %s}, initialDelaySeconds: 3600}}\n", i, app.Port, app.Port)
	}
	b.WriteString(strings.TrimPrefix(app.Target("busy"), "\n"))
	a := agenttest.StartProcess(t, "", agenttest.Flags(testutil.Write(t, b.String()), "--web.max-requests=4")...)
	a.Says(a.Health+"/live/busy", 200, "ok")
	var refused, served atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 100 {
		clients.Go(func() {
			dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
			}}
			c, err := dialer.Dial("tcp", strings.TrimPrefix(a.Web, "http://"))
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
			line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
			switch {
			case err != nil:
			case strings.Contains(line, "503"):
				refused.Add(1)
				return
			default:
				served.Add(1)
			}
			<-stop
		})
	}
	a.Eventually("the agent refuses clients beyond the limit", func() error {
		if r, s := refused.Load(), served.Load(); r < 50 || s == 0 {
			return fmt.Errorf("%d refused, %d served", r, s)
		}
		return nil
	})
	before := app.Asked.Load()
	a.Eventually("the agent goes on asking the busy target", func() error {
		if asked := app.Asked.Load() - before; asked < 20 {
			return fmt.Errorf("%d times", asked)
		}
		return nil
	})
	a.Is(a.Health+"/live", 200, "ok")
	close(stop)
	clients.Wait()
}

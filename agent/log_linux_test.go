// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// logPipe returns a pipe of 4 KiB, the smallest possible, for the log of a process.
func logPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	if size, err := unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil || size != 4096 {
		t.Fatalf("a pipe of %d bytes: %v", size, err)
	}
	return read, write
}

// An agent whose log nobody reads still sees a hanging application in time. It ends on SIGTERM,
// and ends at once on a second SIGTERM.
func TestLogThatNobodyReads(t *testing.T) {
	var hangs atomic.Bool
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" && hangs.Load() {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = w.Write(make([]byte, 256)) // the log makes six times as many bytes of it
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var config strings.Builder
	fmt.Fprintf(&config, "targets:\n  - name: app\n    livenessProbe: {httpGet: {port: %s, path: /live}, periodSeconds: 0.2, timeoutSeconds: 0.5, failureThreshold: 2}\n", port)
	for i := range 40 { // each attempt logs a line, so the queue is full in a few seconds
		fmt.Fprintf(&config, "  - {name: talks%d, readinessProbe: {httpGet: {port: %s}, periodSeconds: 0.03}}\n", i, port)
	}
	file := testutil.Write(t, config.String())

	for _, delay := range []string{"0s", "1h"} {
		hangs.Store(false)
		_, stderr := logPipe(t)
		if _, err := stderr.Write(make([]byte, 4096)); err != nil { // the first line is already stuck
			t.Fatal(err)
		}
		ports := testutil.Ports(t, 2)
		cmd := agenttest.Command(t, "--config.file="+file, "--log.level=debug", "--shutdown.delay="+delay,
			"--web.listen-address=127.0.0.1:"+ports[0], "--health.listen-address=127.0.0.1:"+ports[1])
		cmd.Stderr = stderr
		a := agenttest.New(t)
		a.Web, a.Health = "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
		a.Begin(cmd)
		a.Says(a.Health+"/live/app", 200, "ok")
		if delay == "0s" {
			a.Eventually("the agent drops lines", func() error {
				dropped := a.Metric("prober_exporter_log_lines_dropped_total")
				if n, _ := strconv.ParseFloat(dropped, 64); n == 0 {
					return fmt.Errorf("%q lines dropped", dropped)
				}
				return nil
			})
		}
		hangs.Store(true)
		a.Says(a.Health+"/live/app", 503, "timeout (2/2)")

		terminate := func() {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		terminate()
		if delay != "0s" {
			a.Says(a.Health+"/-/ready", 503, "stopping")
			begin = time.Now()
			terminate()
		}
		if code := a.Wait(); code != 0 || time.Since(begin) > 5*time.Second {
			t.Errorf("delay %s: exit %d after %v, want 0 within a moment", delay, code, time.Since(begin))
		}
	}
}

// Everything that a start logs before it fails arrives in order, however slowly the log's
// reader reads.
func TestLogOfAFailedStart(t *testing.T) {
	const mistakes = 450
	file := testutil.Write(t, "targets:\n"+strings.Repeat("  - {name: a b, livenessProbe: {tcpSocket: {port: 1}}}\n", mistakes))
	read, stderr := logPipe(t)
	cmd := agenttest.Command(t, agenttest.Flags(file)...)
	cmd.Stderr = stderr
	a := agenttest.New(t)
	a.Begin(cmd)
	stderr.Close()
	next := 0
	for lines := bufio.NewScanner(read); lines.Scan(); {
		if strings.Contains(lines.Text(), fmt.Sprintf("targets[%d].name", next)) {
			next++
		}
	}
	if code := a.Wait(); code != 1 || next != mistakes {
		t.Errorf("exit %d, %d mistakes logged in order, want 1 and %d", code, next, mistakes)
	}
}

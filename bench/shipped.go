// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// agent is a running process of the shipped binary, or of another program that is measured
// beside it.
type agent struct {
	cmd    *exec.Cmd
	dir    string
	base   string // of its URLs
	client *http.Client
	begun  time.Time
}

// scrapeAccept is the Accept header of a Prometheus by default.
const scrapeAccept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

// ship starts the shipped binary with a configuration and with more flags.
func (b *bench) ship(configuration string, flags ...string) (*agent, error) {
	return b.shipAs(b.binary, configuration, flags...)
}

// shipAs starts a program that knows the flags of the shipped binary.
func (b *bench) shipAs(binary, configuration string, flags ...string) (_ *agent, err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	a := &agent{dir: dir, client: &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: time.Minute}}
	defer func() {
		if err != nil {
			a.stop()
		}
	}()
	file := filepath.Join(dir, "prober.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	a.base = "http://" + address
	a.cmd = exec.CommandContext(b.ctx, binary, append([]string{"--config.file", file, "--web.listen-address", address}, flags...)...)
	a.begun = time.Now()
	if err := a.cmd.Start(); err != nil {
		a.cmd = nil
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return a, nil
}

// stop ends the agent and waits for its end.
func (a *agent) stop() {
	if a.cmd != nil {
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		_ = a.cmd.Wait() // the exit code does not matter to a measurement
	}
	a.client.CloseIdleConnections()
	_ = os.RemoveAll(a.dir)
}

// freeAddress finds a port on an address of loopback that nobody else uses, so that no
// connection takes the port before the agent does.
func freeAddress() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.2.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// get asks for a path and reads the whole answer.
func (a *agent) get(path string, header http.Header) (body string, err error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, a.base+path, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header = header
	response, err := a.client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(text), err
}

// untilReady waits until all targets are ready: then their probes have run.
func (a *agent) untilReady(ctx context.Context, atMost time.Duration) error {
	return a.until(ctx, atMost, "/ready")
}

// until waits until a path answers with 200.
func (a *agent) until(ctx context.Context, atMost time.Duration, path string) error {
	var err error
	for end := time.Now().Add(atMost); time.Now().Before(end); pause(ctx, 100*time.Millisecond) {
		if _, err = a.get(path, nil); err == nil {
			return nil
		}
	}
	return fmt.Errorf("wait for %s: %w", a.cmd.Path, err)
}

// cpu returns the CPU time that the agent has used.
func (a *agent) cpu() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/" + a.pid() + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read what the agent used: %w", err)
	}
	const (
		userTime = 11 // counted after the name, which may contain blanks
		tick     = 10 * time.Millisecond
	)
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < userTime+2 {
		return 0, errors.New("read what the agent used: too few fields")
	}
	user, errUser := strconv.ParseInt(fields[userTime], 10, 64)
	system, errSystem := strconv.ParseInt(fields[userTime+1], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(errUser, errSystem)
}

func (a *agent) pid() string { return strconv.Itoa(a.cmd.Process.Pid) }

// targets writes a configuration of n targets with httpGet probes at the target server.
func (b *bench) targets(n int, period time.Duration, kinds ...string) string {
	s := spec{Action: actionHTTP, At: b.at[actionHTTP], Source: b.source}
	return configuration(s, n, period, kinds)
}

// start measures from the start of the process to the first connection of a probe.
func start(b *bench, r row) error {
	var took []float64
	for range b.rounds {
		ms, err := b.startOnce()
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	b.table.add(line{title: r.title, unit: "ms", ours: took, reach: took, goal: r.goal, goalUnit: " ms"})
	return nil
}

func (b *bench) startOnce() (float64, error) {
	l, err := new(net.ListenConfig).Listen(b.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen for the first probe: %w", err)
	}
	first := make(chan time.Time, 1)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case first <- time.Now():
			default: // a later connection
			}
			_ = conn.Close()
		}
	})
	defer accepting.Wait()
	defer func() { _ = l.Close() }() // ends Accept
	s := spec{Action: actionHTTP, At: []string{l.Addr().String()}, Source: b.source}
	a, err := b.ship(configuration(s, many, 10*time.Second, []string{"readiness"}))
	if err != nil {
		return 0, err
	}
	defer a.stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	select {
	case at := <-first:
		return float64(at.Sub(a.begun).Microseconds()) / 1e3, nil
	case <-limit.C:
		return 0, errors.New("no probe came within 30 s")
	}
}

// ready compares the time that /ready takes with many targets and with three, by turns in the
// same run, over connections that stay open.
func ready(b *bench, r row) error {
	agents := [2]*agent{}
	for i, n := range [2]int{3, many} {
		a, err := b.ship(b.targets(n, time.Hour, "readiness"))
		if err != nil {
			return err
		}
		defer a.stop()
		agents[i] = a
	}
	for _, a := range agents {
		if err := a.untilReady(b.ctx, time.Minute); err != nil {
			return err
		}
	}
	pause(b.ctx, time.Second)
	const requests = 500
	took := [2][]float64{}
	var ratios []float64
	for range b.rounds {
		for i, a := range agents {
			each := make([]float64, requests)
			for n := range each {
				began := time.Now()
				if _, err := a.get("/ready", nil); err != nil {
					return err
				}
				each[n] = float64(time.Since(began).Nanoseconds()) / 1e3
			}
			took[i] = append(took[i], median(each))
		}
		last := len(took[0]) - 1
		ratios = append(ratios, took[1][last]/took[0][last])
	}
	b.table.add(line{title: r.title + " (first column: 3 targets)", unit: "µs", usual: took[0], ours: took[1], reach: ratios, goal: r.goal, goalUnit: "×"})
	return nil
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

// With 64 files at most and a crowd of idle clients on the web listener, healthy
// targets stay live on the health listener, and the log says what is wrong.
func TestFewFiles(t *testing.T) {
	app := newApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  - {name: t%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.5, failureThreshold: 1}}\n", i, app.port)
		fmt.Fprintf(&b, "  - {name: e%d, livenessProbe: {exec: {command: ['true']}, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 1}}\n", i)
	}
	a := startProcess(t, "ulimit -n 64", flags(write(t, b.String()))...)
	for range 100 {
		c, err := net.Dial("tcp", strings.TrimPrefix(a.web, "http://"))
		if err != nil {
			break // the kernel's queue is full
		}
		defer c.Close()
	}
	until := time.Now().Add(3 * time.Second)
	for time.Now().Before(until) {
		a.is(a.health+"/live", 200, "ok")
	}
	a.logs("level=warn", "limit of open files", "64")
	if log := a.log.String(); strings.Contains(log, "result changed") {
		t.Errorf("a result changed:\n%s", log)
	}
}

// Where not one file more can be opened, and three hundred attempts a second take each that
// comes free, the health listener has its own: a kubelet gets every answer.
func TestReserveOfFiles(t *testing.T) {
	app := newApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  - {name: t%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 1}}\n", i, app.port)
	}
	a := startProcess(t, "", flags(write(t, b.String()))...)
	a.says(a.health+"/ready", 200, "ok")
	// The reserve is opened early, so that all files below it stay open.
	limit := unix.Rlimit{Cur: 1, Max: 1}
	for fd := range uint64(64) {
		if file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", a.cmd.Process.Pid, fd)); file == os.DevNull {
			limit = unix.Rlimit{Cur: fd + 1, Max: fd + 1}
		}
	}
	if err := unix.Prlimit(a.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	a.logs("too many open files")
	if answered, longest := kubeletAsks(t, a.health+"/live", 30); answered != 30 {
		t.Errorf("the kubelet got %d of 30 answers, the longest after %v", answered, longest)
	}
}

// A log that cannot be written to, because the disk is full or its reader has gone,
// takes nothing from anybody.
func TestLogCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	reader, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	reader.Close()
	for what, sink := range map[string]*os.File{"the disk is full": full, "the reader has gone": gone} {
		t.Run(what, func(t *testing.T) {
			app := newApp(t)
			address := "127.0.0.1:" + testutil.Port(t) // it cannot be read from the log
			cmd := command(t, "--config.file="+write(t, "targets:"+app.target("app", "    instance: {source: static}")),
				"--web.listen-address=127.0.0.1:0", "--health.listen-address="+address)
			cmd.Stderr = sink
			a := &agent{t: t, log: &logBuffer{}, health: "http://" + address}
			a.begin(cmd)
			a.says(a.health+"/ready", 200, "ok")
			app.broken.Store(true)
			a.says(a.health+"/live", 503, "app failed")
			app.broken.Store(false)
			a.says(a.health+"/live", 200, "ok")
			if code := a.stop(); code != 0 {
				t.Errorf("exit %d, want 0", code)
			}
		})
	}
}

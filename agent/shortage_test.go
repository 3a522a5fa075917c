// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
)

// With 64 files at most and a crowd of idle clients on the web listener, healthy targets stay
// live on the health listener, and the log says what is wrong.
func TestFewFiles(t *testing.T) {
	app := agenttest.NewApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  - {name: t%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.5, failureThreshold: 1}}\n", i, app.Port)
		fmt.Fprintf(&b, "  - {name: e%d, livenessProbe: {exec: {command: ['true']}, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 1}}\n", i)
	}
	a := agenttest.StartProcess(t, "ulimit -n 64", agenttest.Flags(testutil.Write(t, b.String()))...)
	for range 100 {
		c, err := net.Dial("tcp", strings.TrimPrefix(a.Web, "http://"))
		if err != nil {
			break // the kernel's queue is full
		}
		defer c.Close()
	}
	until := time.Now().Add(3 * time.Second)
	for time.Now().Before(until) {
		a.Is(a.Health+"/live", 200, "ok")
	}
	a.Logs("level=warn", "limit of open files", "64")
	if log := a.Log.String(); strings.Contains(log, "result changed") {
		t.Errorf("a result changed:\n%s", log)
	}
}

// The process can open no more files, and three hundred attempts a second take each file that
// becomes free. The health listener has a reserve, so a kubelet gets every answer.
func TestReserveOfFiles(t *testing.T) {
	app := agenttest.NewApp(t)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  - {name: t%d, livenessProbe: {httpGet: {port: %s}, periodSeconds: 0.1, failureThreshold: 1}}\n", i, app.Port)
	}
	a := agenttest.StartProcess(t, "", agenttest.Flags(testutil.Write(t, b.String()))...)
	a.Says(a.Health+"/ready", 200, "ok")
	// The agent opens the reserve early, so all files below it stay open.
	limit := unix.Rlimit{Cur: 1, Max: 1}
	for fd := range uint64(64) {
		if file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", a.Cmd.Process.Pid, fd)); file == os.DevNull {
			limit = unix.Rlimit{Cur: fd + 1, Max: fd + 1}
		}
	}
	if err := unix.Prlimit(a.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	a.Logs("too many open files")
	if answered, longest := kubeletAsks(t, a.Health+"/live", 30); answered != 30 {
		t.Errorf("the kubelet got %d of 30 answers, the longest after %v", answered, longest)
	}
}

// A log that cannot be written, because the disk is full or the log's reader has gone, disturbs
// nothing else.
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
			app := agenttest.NewApp(t)
			address := "127.0.0.1:" + testutil.Port(t) // because this test cannot read the address from the log
			cmd := agenttest.Command(t, "--config.file="+testutil.Write(t, "targets:"+app.Target("app", "    instance: {source: static}")),
				"--web.listen-address=127.0.0.1:0", "--health.listen-address="+address)
			cmd.Stderr = sink
			a := agenttest.New(t)
			a.Health = "http://" + address
			a.Begin(cmd)
			a.Says(a.Health+"/ready", 200, "ok")
			app.Broken.Store(true)
			a.Says(a.Health+"/live", 503, "app failed")
			app.Broken.Store(false)
			a.Says(a.Health+"/live", 200, "ok")
			if code := a.Stop(); code != 0 {
				t.Errorf("exit %d, want 0", code)
			}
		})
	}
}

// An agent that hangs in reading its file at the start still ends on SIGTERM.
func TestEndWhileTheFileHangs(t *testing.T) {
	t.Parallel()
	const file = "/dev/ptmx" // each reader gets a terminal of its own, on which nobody types
	if _, err := os.Stat(file); err != nil {
		needs.Missing(t, "pseudo terminals")
	}
	cmd := agenttest.Command(t, agenttest.Flags(file)...)
	log := &testutil.Log{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	testutil.Eventually(t, "the agent starts", func() error {
		if !strings.Contains(log.String(), "starting prober_exporter") {
			return errors.New(log.String())
		}
		return nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(15 * time.Second)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		t.Error("the agent has not ended 15 s after SIGTERM")
		_ = cmd.Process.Kill()
		<-ended
	}
}

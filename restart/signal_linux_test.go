// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// victim starts a shell script as a process of its own, and returns the process once the script
// has made the file $F.
func victim(t *testing.T, script string) proc.Process {
	t.Helper()
	begun := filepath.Join(t.TempDir(), "begun")
	pid := testutil.Orphan(t, `sh -c 'F=`+begun+`; `+script+`'`)
	testutil.Until(t, "the script has begun", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	files := proc.FS{Root: "/proc"}
	stat, err := files.Stat(pid)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Process
}

func runs(t *testing.T, who proc.Process) bool {
	t.Helper()
	files := proc.FS{Root: "/proc"}
	alive, err := files.Runs(who)
	if err != nil {
		t.Fatal(err)
	}
	return alive
}

func signalRequest(who proc.Process, signal string, grace time.Duration) *request {
	return &request{
		target:   &config.Target{Restart: &config.Restart{Signal: &config.RestartSignal{StopSignal: signal}}},
		instance: who.Life("0000"), grace: grace, begin: mayBegin,
	}
}

const (
	waits = `while :; do sleep 0.01; done`
	deaf  = `trap "" TERM; : >$F; ` + waits
)

// A process that ends at its stop signal gets no other; the signals may have any name.
func TestSignal(t *testing.T) {
	for _, name := range []string{"SIGTERM", "SIGUSR1", "SIGRTMIN+3"} {
		who := victim(t, `: >$F; `+waits)
		did, err := signalProcess(t.Context(), signalRequest(who, name, time.Minute))
		if err != nil || !strings.Contains(did, "has got "+name+", and ended") || runs(t, who) {
			t.Errorf("%s: %q, error %v", name, did, err)
		}
	}
	who := victim(t, `: >$F; `+waits)
	life := signalRequest(who, "SIGTERM", time.Minute)
	life.instance += "/1" // a declared restart of the same process
	if _, err := signalProcess(t.Context(), life); err != nil || runs(t, who) {
		t.Errorf("a declared instance: error %v", err)
	}
}

// A process that does not end at SIGTERM gets SIGKILL after the grace period, and not before.
func TestSignalKills(t *testing.T) {
	who := victim(t, deaf)
	began := time.Now()
	did, err := signalProcess(t.Context(), signalRequest(who, "SIGTERM", 500*time.Millisecond))
	if took := time.Since(began); err != nil || !strings.Contains(did, "SIGKILL after 500ms") || runs(t, who) || took < 500*time.Millisecond {
		t.Errorf("%q after %v, error %v", did, took, err)
	}
}

// When the agent stops, or the pod terminates, the process keeps its signal and gets no SIGKILL,
// however short the grace period is.
func TestSignalCutShort(t *testing.T) {
	who := victim(t, `trap ": >$F.got" TERM; : >$F; `+waits)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := signalProcess(ctx, signalRequest(who, "SIGTERM", 30*time.Second))
		ended <- err
	}()
	command, err := os.ReadFile("/proc/" + strings.Split(who.Life(""), "/")[1] + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(command), "F=")
	file, _, _ = strings.Cut(file, ";")
	testutil.Until(t, "the process has got SIGTERM", func() bool {
		_, err := os.Stat(file + ".got")
		return err == nil
	})
	cancel()
	if err := testutil.Receive(t, ended, "the end of the act"); err == nil || !strings.Contains(err.Error(), "no SIGKILL follows") {
		t.Errorf("got %v", err)
	}
	if !runs(t, who) {
		t.Error("the process was killed")
	}
}

// Nobody is hit who is not the very process: neither whoever has its number by now, nor an
// instance that is no process, nor the agent itself.
func TestSignalNobodyElse(t *testing.T) {
	who := victim(t, `: >$F; `+waits)
	before := proc.Process{PID: who.PID, Start: who.Start - 1} // who has taken its number
	gone := victim(t, `: >$F; `+waits)
	testutil.Kill(t, gone.PID)
	files := proc.FS{Root: "/proc"}
	self, err := files.Stat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		instance string
		stale    bool
		why      string
	}{
		"reused": {before.Life("0000"), true, "the process has ended"},
		"gone":   {gone.Life("0000"), true, "the process has ended"},
		"socket": {"socket-123", true, "no process"},
		"docker": {"0123456789ab@2026-01-01T00:00:00Z", true, "no process"},
		"all":    {"0000/-1/1", true, "no process"},
		"own":    {self.Life("0000"), false, "the agent's own"},
	} {
		q := signalRequest(who, "SIGTERM", time.Second)
		q.instance = c.instance
		_, err := signalProcess(t.Context(), q)
		var dropped stale
		if err == nil || errors.As(err, &dropped) != c.stale || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %s", name, err, c.why)
		}
	}
	if !runs(t, who) {
		t.Error("the process with the number has got the signal")
	}
}

// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prober-exporter/prober_exporter/config"
	"github.com/prober-exporter/prober_exporter/internal/needs"
	"github.com/prober-exporter/prober_exporter/internal/testutil"
	"github.com/prober-exporter/prober_exporter/internal/testutil/agenttest"
	"github.com/prober-exporter/prober_exporter/prober"
)

// The soft limit is four fifths of the limit, but never less than 16 MiB. The number that
// stands for no limit does not overflow.
func TestSoftLimit(t *testing.T) {
	for hard, want := range map[uint64]int64{
		100 << 20:      80 << 20,
		20 << 20:       16 << 20,
		1 << 20:        16 << 20,
		math.MaxUint64: int64(softShare * float64(math.MaxInt64/2)),
	} {
		if got := softLimit(hard); got != want {
			t.Errorf("of %d: %d, want %d", hard, got, want)
		}
	}
}

// 300 probes of addresses need 48 + 4 × 300 files. Probes of names, or by commands, need twice
// as many. 20 attempts at a time need 256 files as always. Nobody needs more files than for
// 8,000 attempts at a time.
func TestFilesFor(t *testing.T) {
	tcp := &config.Probe{TCPSocket: &config.TCPSocket{}}
	configuration := func(host string, probe *config.Probe, targets int) *config.Config {
		cfg := new(config.Config)
		for range targets {
			cfg.Targets = append(cfg.Targets, config.Target{Host: host, ReadinessProbe: probe, LivenessProbe: probe})
		}
		return cfg
	}
	addresses := configuration("127.0.0.1", tcp, 150)
	for maxInFlight, want := range map[int]int{0: 1248, 100: 448, 20: 256, 1000: 1248} {
		if got := filesFor(addresses, maxInFlight); got != want {
			t.Errorf("%d at a time: %d, want %d", maxInFlight, got, want)
		}
	}
	for what, c := range map[string]struct {
		cfg  *config.Config
		want int
	}{
		"names":     {configuration("app", tcp, 150), 48 + 8*300},
		"commands":  {configuration("127.0.0.1", &config.Probe{Exec: &config.Exec{}}, 150), 48 + 8*300},
		"very many": {configuration("::1", tcp, 1<<14), 48 + 4*prober.HighestInFlight},
	} {
		if got := filesFor(c.cfg, 0); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// With 1,024 files, 300 targets that hang for 10 s may have 244 attempts in flight, so each
// target gets an attempt every 12.3 s. With --probe.max-in-flight=100 each gets an attempt
// every minute.
func TestHangingEvery(t *testing.T) {
	cfg := new(config.Config)
	for range 300 {
		cfg.Targets = append(cfg.Targets, config.Target{Host: "127.0.0.1", LivenessProbe: &config.Probe{TCPSocket: &config.TCPSocket{}, Timeout: 10 * time.Second}})
	}
	for maxInFlight, want := range map[int]time.Duration{0: 12300 * time.Millisecond, 100: time.Minute} {
		if got := prober.HangingEvery(cfg, 1024, maxInFlight).Round(100 * time.Millisecond); got != want {
			t.Errorf("%d at a time: every %v, want %v", maxInFlight, got, want)
		}
	}
	cfg.Targets[0].LivenessProbe.Timeout = math.MaxInt64
	if got := prober.HangingEvery(cfg, 64, 1); got <= 0 {
		t.Errorf("with the longest timeout: every %v", got)
	}
}

// memoryLimits returns the agent's GOGC and GOMEMLIMIT from its own metrics.
func memoryLimits(t *testing.T, a *agenttest.Agent) (gogc, limit float64) {
	t.Helper()
	for name, value := range map[string]*float64{"go_gc_gogc_percent": &gogc, "go_gc_gomemlimit_bytes": &limit} {
		var err error
		if *value, err = strconv.ParseFloat(a.Metric(name), 64); err != nil {
			t.Fatal(err)
		}
	}
	return gogc, limit
}

// In a cgroup of 64 MiB the agent sets GOMEMLIMIT to four fifths of that, and GOGC to 50.
// Values of the environment stay as they are.
func TestMemoryLimits(t *testing.T) {
	group := memoryGroup(t, 64<<20)
	enter := "echo $$ > " + filepath.Join(group, "cgroup.procs")
	file := testutil.Write(t, "targets: []\n")
	for environment, want := range map[string]struct {
		gogc, limit float64
		line        string
	}{
		"":                               {50, 53687091, `msg="memory limits set" GOGC=50 GOMEMLIMIT=53687091 cgroup_limit=67108864`},
		"export GOGC=80":                 {80, 53687091, `msg="memory limits set" GOMEMLIMIT=53687091`},
		"export GOMEMLIMIT=1GiB":         {50, 1 << 30, `msg="memory limits set" GOGC=50`},
		"export GOGC=off GOMEMLIMIT=off": {-1, math.MaxInt64, "are those of the environment"},
	} {
		shell := enter
		if environment != "" {
			shell += "; " + environment
		}
		a := agenttest.StartProcess(t, shell, agenttest.Flags(file, "--log.level=debug")...)
		a.Logs(want.line)
		gogc, limit := memoryLimits(t, a)
		if want.gogc < 0 && gogc > 1000 {
			gogc = want.gogc // the number for "off" depends on the version of Go
		}
		if gogc != want.gogc || limit != want.limit {
			t.Errorf("%q: GOGC %v and GOMEMLIMIT %v, want %v and %v", environment, gogc, limit, want.gogc, want.limit)
		}
		if code := a.Stop(); code != 0 {
			t.Errorf("%q: exit %d", environment, code)
		}
	}
}

// memoryGroup makes a cgroup, of version 1 or 2, with a memory limit.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	own := ""
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		needs.Missing(t, err)
	}
	for line := range strings.Lines(string(text)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
			own = path
		}
	}
	for _, version := range [][2]string{
		{"/sys/fs/cgroup/memory" + own, "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		parent, file := version[0], version[1]
		group := filepath.Join(parent, fmt.Sprintf("prober-exporter-test-%d", os.Getpid()))
		if os.Mkdir(group, 0o700) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(group); err != nil { // its processes have ended
				t.Error(err)
			}
		})
		f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0) // the kernel has made the file
		if err != nil {
			continue
		}
		_, err = fmt.Fprint(f, limit)
		if f.Close(); err == nil {
			return group
		}
	}
	needs.Missing(t, "a cgroup that limits memory")
	return ""
}

// A cgroup that the agent cannot read, or that has no limit, sets no limit and logs nothing.
func TestNoMemoryLimit(t *testing.T) {
	t.Setenv("GOGC", "100")
	t.Setenv("GOMEMLIMIT", "")
	var log bytes.Buffer
	limitMemory(newLogger(&Options{LogLevel: "debug", LogFormat: "logfmt"}, &log), func() (uint64, error) {
		return 0, os.ErrPermission
	})
	if got := log.String(); strings.Contains(got, "level=info") || !strings.Contains(got, "permission denied") {
		t.Errorf("the log is %s", got)
	}
}

// The agent raises its soft limit of open files to the hard limit, but its commands have the
// soft limit that the agent was given.
func TestOpenFilesOfCommands(t *testing.T) {
	a := agenttest.StartProcess(t, "ulimit -S -n 99; ulimit -H -n 700", agenttest.Flags(testutil.Write(t, `
targets:
  - name: app
    readinessProbe: {exec: {command: [sh, -c, 'ulimit -n; test $(ulimit -n) = 99']}, failureThreshold: 1}
`))...)
	a.Says(a.Health+"/ready", 200, "ok")
	if got := a.Metric("process_max_fds"); got != "700" && got != "699" {
		t.Errorf("the agent may open %s files, want 700, or 699 because the runtime marks its own limit", got)
	}
}

// An agent with too few files for its probes logs once how many they need, and logs again only
// when they need more.
func TestFewFilesForProbes(t *testing.T) {
	targets := func(n int) string {
		var b strings.Builder
		b.WriteString("targets:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {name: t%d, livenessProbe: {tcpSocket: {port: 1}, initialDelaySeconds: 600}}\n", i)
		}
		return b.String()
	}
	file := testutil.Write(t, targets(63))
	a := agenttest.StartProcess(t, "ulimit -n 300", agenttest.Flags(file)...)
	warnings := func(n int) string {
		testutil.Rewrite(t, file, targets(n))
		if err := a.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		a.Logs("configuration loaded", fmt.Sprintf("targets=%d", n))
		a.Says(fmt.Sprintf("%s/live/t%d", a.Health, n-1), 200, "")
		var found []string
		for line := range strings.Lines(a.Log.String()) {
			if strings.Contains(line, "limit of open files") {
				_, rest, _ := strings.Cut(line, "limit=")
				found = append(found, strings.TrimSpace(rest))
			}
		}
		return strings.Join(found, "; ")
	}
	const first, more = "300 needed=304 hanging_attempted_every=1s", "300 needed=308 hanging_attempted_every=1s"
	for _, c := range []struct {
		targets int
		want    string
	}{
		{62, ""}, {64, first}, {10, first}, {64, first}, {65, first + "; " + more},
	} {
		if got := warnings(c.targets); got != c.want {
			t.Errorf("%d targets: warned of %q, want %q", c.targets, got, c.want)
		}
	}
}
